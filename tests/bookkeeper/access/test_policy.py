"""X12: the policy denies what it does not grant."""

from __future__ import annotations

import pytest

from bookkeeper.access import CLUSTER, Grant, Policy, Principal, PrincipalKind, Resource, Right, Subject

ETL = Principal(PrincipalKind.CERTIFICATE, "etl")
OTHER = Principal(PrincipalKind.CERTIFICATE, "other")
NOBODY = Principal(PrincipalKind.NOBODY, "")
APP = Resource.parse("streams:app/x")


def _grant(who: str, rights: set[Right], on: str) -> Grant:
    return Grant(Subject.parse(who), frozenset(rights), Resource.parse(on))


@pytest.mark.rule("X12")
def test_what_no_grant_gives_is_denied_and_the_reason_names_it() -> None:
    decision = Policy().decide(ETL, Right.READ, APP)
    assert not decision.allowed
    assert decision.reason == "no grant gives etl the right to read on streams:app/x"


def test_a_grant_gives_its_rights_on_what_it_covers_to_whom_it_means() -> None:
    policy = Policy(grants=(_grant("etl", {Right.APPEND, Right.READ}, "streams:app"),))
    assert policy.rights(ETL, APP) == {Right.APPEND, Right.READ}
    assert policy.decide(ETL, Right.READ, APP).reason == "granted: etl append,read streams:app"
    assert policy.rights(OTHER, APP) == frozenset()
    assert policy.rights(ETL, Resource.parse("streams:apple")) == frozenset()
    assert policy.rights(ETL, CLUSTER) == frozenset()


def test_a_principal_owns_the_ledgers_of_his_name_and_does_not_repair_them() -> None:
    own = Resource.parse("ledgers:etl")
    assert Policy().rights(ETL, own) == set(Right) - {Right.REPAIR, Right.ADMINISTER}
    assert Policy().decide(ETL, Right.RECOVER, own).reason == "etl owns ledgers:etl"
    assert Policy().rights(OTHER, own) == frozenset()
    assert Policy().rights(ETL, Resource.parse("ledgers:etl/x")) == frozenset()


def test_who_shows_nothing_owns_nothing() -> None:
    nameless = Policy().rights(NOBODY, Resource.parse("ledgers:/"))
    assert nameless == frozenset()


def test_grants_of_one_subject_on_one_resource_are_one_grant() -> None:
    policy = Policy().with_grant(_grant("etl", {Right.READ}, "streams:app"))
    policy = policy.with_grant(_grant("etl", {Right.APPEND}, "streams:app"))
    assert [str(each) for each in policy.grants] == ["etl append,read streams:app"]
    policy = policy.without_rights(_grant("etl", {Right.READ}, "streams:app"))
    assert [str(each) for each in policy.grants] == ["etl append streams:app"]
    assert policy.without_rights(_grant("etl", {Right.APPEND}, "streams:app")).grants == ()
    assert policy.without_rights(_grant("etl", {Right.APPEND}, "streams:app/x")) == policy
