from __future__ import annotations

import pytest

from bookkeeper.access import Grant, Mode, Policy, Principal, QuotaKind, QuotaRefusal, Resource, Right, Subject
from bookkeeper.gateways.authentication import UnauthenticatedError
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import ANY_RIGHT, CallerRights
from segments.errors import StreamAccessError, StreamOverloadedError
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.request_rights import APPEND, READ
from segments.protocol.refusals import get_error, put_error


def test_a_caller_may_use_the_streams_below_its_roots() -> None:
    call = GrpcCall(Caller("etl", ("/a", "/b/c")))
    for name in ("a", "a/x", "b/c", "/a"):
        call.require(name, READ)
        assert call.sees(name)
    for name in ("ab", "b", "c"):
        with pytest.raises(StreamAccessError, match=rf"etl may not use stream {name} \(no right to read\)"):
            call.require(name, READ)
        assert not call.sees(name)
    with pytest.raises(StreamAccessError, match="may not look at all streams: its token is valid below /a, /b/c"):
        call.require("", READ)
    GrpcCall(Caller("root")).require("", READ)
    nobody = GrpcCall(None)
    assert nobody.sees("anything")
    nobody.require("", ANY_RIGHT)


@pytest.mark.rule("X15")
def test_a_call_may_go_on_while_its_credential_and_every_right_that_it_used_are_there() -> None:
    policies = [Policy()]
    shown: list[Caller | None] = [Caller("a")]

    def again() -> Caller | None:
        if shown[-1] is None:
            raise UnauthenticatedError("The token is not valid", why="token 12 was revoked")
        return shown[-1]

    call = GrpcCall(Caller("a"), again, permissions=CallerRights(lambda: policies[-1]))
    call.require("s", APPEND)
    assert call.recheck() is None
    grant = Grant(Subject.parse("a"), frozenset({Right.APPEND}), Resource.parse("streams:s"))
    policies.append(Policy(Mode.ENFORCE, (grant,)))
    assert call.recheck() is None
    shown.append(Caller("a", ("/s",)))
    assert call.recheck() is None, "its token has got limits that leave this stream"
    policies.append(Policy(Mode.ENFORCE))
    taken = call.recheck()
    assert taken is not None
    assert taken.why == "taken away: no grant gives a the right to append on streams:s"
    policies.append(Policy())
    assert call.recheck() is taken, "what has to end ends"

    other = GrpcCall(Caller("a"), again)
    shown.append(None)
    ended = other.recheck()
    assert ended is not None
    assert str(ended) == "the credentials of this call are no longer valid", "never why"
    assert ended.why == "token 12 was revoked"


def test_who_appends_too_fast_is_told_which_quota_and_when_to_come_back() -> None:
    refusal = QuotaRefusal("principal a", QuotaKind.ADDS_PER_S, 10, 0.25)
    asked: list[tuple[str, int, int]] = []

    def take(principal: Principal, entries: int, size: int) -> QuotaRefusal | None:
        asked.append((principal.name, entries, size))
        return refusal if entries > 1 else None

    call = GrpcCall(Caller("a"), permissions=CallerRights(take=take))
    assert call.charge(1, 7) is None
    slower = call.charge(2, 9)
    assert slower is not None
    assert (
        str(slower) == "the quota adds_per_s of principal a, 10, is used up: come back in 250 ms; nothing was appended"
    )
    assert asked == [("a", 1, 7), ("a", 2, 9)]
    message = put_error(slower)
    assert message.retry_after_ms == 250
    told = get_error(message)
    assert isinstance(told, StreamOverloadedError) and told.after_s == 0.25
    assert GrpcCall(None).charge(10**9, 10**12) is None


@pytest.mark.rule("X15")
@pytest.mark.parametrize("loss", ["token", "right"])
async def test_what_waits_for_its_callers_rates_ends_with_his_credential_and_his_right(loss: str) -> None:
    """Cause: a call with one request was looked at when it began, and waited for its turn as long as a quota wanted."""
    grant = Grant(Subject.parse("a"), frozenset({Right.APPEND}), Resource.parse("streams:s"))
    policies, gone = [Policy(Mode.ENFORCE, (grant,))], False

    def again() -> Caller | None:
        if gone:
            raise UnauthenticatedError("The token is not valid", why="token 12 was revoked")
        return Caller("a")

    def take(who: Principal, entries: int, size: int) -> QuotaRefusal | None:
        nonlocal gone
        if loss == "token":
            gone = True
        else:
            policies.append(Policy(Mode.ENFORCE))
        return QuotaRefusal("a", QuotaKind.ADDS_PER_S, 1, after_s=0.001)

    call = GrpcCall(Caller("a"), again, permissions=CallerRights(lambda: policies[-1], take=take))
    call.require("s", APPEND)
    with pytest.raises(StreamAccessError):
        await call.charge_in_time(1, 1)
