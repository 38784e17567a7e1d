from __future__ import annotations

import pytest

from bookkeeper.access import Grant, Mode, Policy, Principal, PrincipalKind, Quota, Resource, Right, Subject, Tenant
from bookkeeper.gateways.caller import Caller, path_resource, stream_resource
from bookkeeper.gateways.permissions import ANY_RIGHT, CallerRights, Denial, all_of, one_of

READ, APPEND = one_of(Right.READ), one_of(Right.APPEND)


def granted(who: str, on: str, *rights: Right) -> Grant:
    return Grant(Subject.parse(who), frozenset(rights), Resource.parse(on))


@pytest.mark.rule("X12")
def test_the_credential_and_the_policy_both_have_to_allow_it() -> None:
    policy = Policy(Mode.ENFORCE, (granted("a", "streams:x", Right.READ), granted("b", "streams:x", Right.APPEND)))
    permissions = CallerRights(lambda: policy)
    x, y = stream_resource("x"), stream_resource("y")
    assert permissions.denial(Caller("a"), READ, x) is None
    assert permissions.denial(Caller("a"), APPEND, x) == Denial(
        "a", Right.APPEND, x, "no grant gives a the right to append on streams:x"
    )
    assert permissions.denial(Caller("a", ("/y",)), READ, x) == Denial(
        "a", Right.READ, x, "its token is valid below /y"
    )
    assert permissions.denial(Caller("a", ("/y",)), READ, y) is not None, (
        "a token grants nothing that a policy does not"
    )
    assert permissions.denial(Caller("b"), all_of(Right.APPEND, Right.READ), x) is not None
    assert permissions.denial(Caller("b"), one_of(Right.DELETE, Right.APPEND), x) is None
    assert permissions.denial(None, READ, x) is not None
    assert [permissions.sees(Caller(name), x) for name in ("a", "b", "c")] == [True, True, False]


@pytest.mark.rule("X12")
def test_a_policy_that_is_observed_is_told_of_and_one_that_is_off_is_not_asked() -> None:
    told: list[tuple[str, Right]] = []
    policy = Policy(Mode.OBSERVE, (granted("a", "paths:/x", Right.READ),))
    permissions = CallerRights(lambda: policy, lambda principal, denial: told.append((str(principal), denial.right)))
    assert permissions.denial(Caller("a"), READ, path_resource("/x")) is None
    assert told == []
    assert permissions.denial(Caller("b"), READ, path_resource("/x")) is None
    assert permissions.denial(None, APPEND, path_resource("/x")) is None
    assert told == [("b", Right.READ), ("nobody", Right.APPEND)]
    assert permissions.denial(Caller("b", ("/y",)), READ, path_resource("/x")) is not None, "a token's limits hold"
    assert permissions.sees(Caller("b"), path_resource("/x"))
    assert permissions.leads_to(Caller("b"), path_resource("/"))
    assert len(told) == 2, "looking is not asking"
    policy = Policy()
    assert permissions.denial(None, APPEND, path_resource("/x")) is None
    assert len(told) == 2


@pytest.mark.rule("X12", "X15")
def test_a_new_policy_counts_at_once_and_is_another_version() -> None:
    policies = [Policy(Mode.ENFORCE)]
    permissions = CallerRights(lambda: policies[-1])
    before, on = permissions.version, stream_resource("s")
    assert permissions.denial(Caller("a"), READ, on) is not None
    assert permissions.version == before
    policies.append(Policy(Mode.ENFORCE, (granted("a", "cluster", Right.READ),)))
    assert permissions.denial(Caller("a"), READ, on) is None
    assert permissions.version != before
    assert permissions.leads_to(Caller("a"), stream_resource("z")), "a grant on everything leads everywhere"
    policies.append(Policy(Mode.ENFORCE))
    assert permissions.denial(Caller("a"), READ, on) is not None


def test_answers_are_forgotten_before_memory_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bookkeeper.gateways.permissions.REMEMBERED", 3)
    permissions = CallerRights()
    for number in range(10):
        assert permissions.denial(Caller("a", ("/s1",)), READ, stream_resource(f"s{number}")) is None or number != 1
    assert len(permissions._answers) <= 3


@pytest.mark.rule("X57")
def test_a_refused_certificate_reads_what_refuses_it() -> None:
    permissions, on = CallerRights(), path_resource("/x")
    nothing = Caller("c", (), kind=PrincipalKind.CERTIFICATE)
    found = [
        permissions.denial(caller, needs, on)
        for caller, needs in (
            (nothing, ANY_RIGHT),
            (Caller("c", (), ("/x",), PrincipalKind.CERTIFICATE), APPEND),
            (Caller("c", ("/y",), kind=PrincipalKind.CERTIFICATE), READ),
        )
    ]
    assert [each and each.reason for each in found] == [
        "no --allow of this gateway names its certificate",
        "its certificate is allowed for reading only",
        "its certificate is allowed below /y",
    ]
    assert not permissions.leads_to(nothing, path_resource("/"))


@pytest.mark.rule("X32")
def test_a_tenants_quota_of_streams_counts_while_a_policy_does() -> None:
    red = Tenant("red", owns=(Resource.parse("streams:red"),), quota=Quota(streams=2))
    told: list[tuple[str, Right, str]] = []
    policies = [Policy(tenants=(red,))]

    def tell(principal: Principal, denial: Denial) -> None:
        told.append((str(principal), denial.right, denial.reason))

    permissions = CallerRights(lambda: policies[-1], tell)
    mine, others = stream_resource("/red/a"), stream_resource("redder")
    assert permissions.limits_streams(mine) is None, "the policy is off"
    policies.append(Policy(Mode.OBSERVE, tenants=(red, Tenant("blue", owns=(Resource.parse("streams:blue"),)))))
    assert permissions.limits_streams(mine) == red
    assert permissions.limits_streams(others) is None and permissions.limits_streams(stream_resource("blue")) is None
    assert permissions.another_stream(Caller("etl"), red, mine, 1) is None and not told
    assert permissions.another_stream(Caller("etl"), red, mine, 2) is None
    refusal = "the quota streams of tenant red, 2, is used up"
    assert [(who, right, why.partition(":")[0]) for who, right, why in told] == [("etl", Right.CREATE, refusal)]
    policies.append(Policy(Mode.ENFORCE, tenants=(red,)))
    assert permissions.limits_streams(mine) == red
    refused = permissions.another_stream(None, red, mine, 2)
    assert refused is not None and str(refused).startswith(refusal) and refused.after_s is None
