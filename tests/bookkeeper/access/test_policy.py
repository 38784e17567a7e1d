"""X12: the policy denies what it does not grant."""

from __future__ import annotations

import pytest

from bookkeeper.access import (
    CLUSTER,
    Grant,
    Policy,
    PolicyChange,
    Principal,
    PrincipalKind,
    PrincipalQuota,
    Quota,
    Resource,
    Right,
    Subject,
    Tenant,
)
from bookkeeper.access.change import CHANGES_MAX
from bookkeeper.errors import ConfigError

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


RED = Tenant("red", (Subject.parse("etl"),), (Resource.parse("streams:red"), Resource.parse("ledgers:red-owner")))


def test_members_use_what_their_tenant_owns_and_nothing_of_others() -> None:
    blue = Tenant("blue", (Subject.parse("other"),), (Resource.parse("streams:blue"),))
    policy = Policy(tenants=(RED, blue))
    inside = Resource.parse("streams:red/x")
    assert policy.rights(ETL, inside) == set(Right) - {Right.REPAIR, Right.ADMINISTER}
    assert policy.decide(ETL, Right.READ, inside).reason == (
        "etl is a member of the tenant red, which owns streams:red/x"
    )
    assert policy.rights(OTHER, inside) == frozenset()
    assert policy.rights(ETL, Resource.parse("streams:blue")) == frozenset()
    assert policy.rights(ETL, Resource.parse("streams:/")) == frozenset(), "what is above is not the tenant's"
    assert not policy.decide(ETL, Right.REPAIR, inside).allowed


def test_a_grant_to_a_tenant_means_its_members() -> None:
    policy = Policy(grants=(_grant("tenant:red", {Right.READ}, "streams:blue"),), tenants=(RED,))
    assert policy.rights(ETL, Resource.parse("streams:blue/x")) == {Right.READ}
    assert policy.rights(OTHER, Resource.parse("streams:blue/x")) == frozenset()
    assert policy.rights(Principal(PrincipalKind.TOKEN, "red"), Resource.parse("streams:blue")) == frozenset()
    assert Policy(grants=policy.grants).rights(ETL, Resource.parse("streams:blue")) == frozenset()


def test_what_a_principal_reaches_is_what_grants_tenants_and_his_name_give_him() -> None:
    grants = (_grant("tenant:red", {Right.READ}, "streams:blue"), _grant("other", {Right.READ}, "cluster"))
    policy = Policy(grants=grants, tenants=(RED,))
    reached = {str(each) for each in policy.reachable(ETL)}
    assert reached == {"streams:blue", "streams:red", "ledgers:red-owner", "ledgers:etl"}
    assert [str(each) for each in policy.reachable(OTHER)] == ["cluster", "ledgers:other"]
    assert policy.reachable(NOBODY) == []


def test_the_tenant_of_a_resource_is_the_one_that_owns_it_or_something_above_it() -> None:
    policy = Policy(tenants=(RED,))
    assert policy.tenant_of(Resource.parse("streams:red/x/y")) == "red"
    assert policy.tenant_of(Resource.parse("streams:redder")) is None
    assert policy.tenant("red") == RED and policy.tenant("blue") is None


def test_two_tenants_cannot_own_the_same() -> None:
    with pytest.raises(ConfigError, match="streams:red/x of the tenant blue overlaps with streams:red of the tenant"):
        Policy(tenants=(RED, Tenant("blue", (), (Resource.parse("streams:red/x"),))))


def test_the_smallest_limit_that_means_a_principal_counts() -> None:
    policy = Policy(
        quotas=(
            PrincipalQuota(Subject.parse("anyone"), Quota(adds_per_s=100, ledgers=5)),
            PrincipalQuota(Subject.parse("etl"), Quota(adds_per_s=50, ledgers=9)),
        )
    )
    assert policy.quota_of(ETL) == Quota(adds_per_s=50, ledgers=5)
    assert policy.quota_of(OTHER) == Quota(adds_per_s=100, ledgers=5)


def test_the_last_changes_are_remembered_and_no_more() -> None:
    policy = Policy()
    for number in range(CHANGES_MAX + 3):
        policy = policy.with_change(PolicyChange(number, "eve", "x"))
    assert [each.at_ms for each in policy.changes] == list(range(3, CHANGES_MAX + 3))
