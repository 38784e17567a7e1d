from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bookkeeper.access import Grant, Mode, Policy, Principal, Resource, Right, Subject
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights, Denial
from bookkeeper.launchers.machine_speed import stretch
from segments.errors import HoldNotFoundError, StreamAccessError, StreamConfigError
from segments.gateway.calls.segment_calls import SegmentCalls
from segments.gateway.guard.grpc_call import GrpcCall
from segments.protocol import segments_pb2 as pb
from segments.protocol.report_messages import put_hold
from segments.remote import connect
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_roll_of_what_has_no_records_is_answered_without_a_new_segment(tmp_path: Path) -> None:
    """It answers as a stream of the library does: with the last completed segment, if there is one."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        assert await stream.roll() is None
        async with stream.writer() as writer:
            await writer.append(b"v")
        for _ in range(3):
            ended = await stream.roll()
            assert ended is not None and (ended.number, ended.records) == (1, 1)


async def test_every_segment_has_a_reason(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append(b"v")
        await stream.roll()
        request = pb.ExplainRequest(stream="s")
        reasons = [each async for each in namespace.channels.stream("Segments.ExplainRetention", request)]
        assert [(each.segment, each.kept) for each in reasons] == [(1, True), (2, True)]
        assert all(each.reason for each in reasons)


async def test_what_cannot_be_is_the_callers_error(tmp_path: Path) -> None:
    """It is refused in words, nothing of it is in the stream, and the gateway goes on."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        await namespace.create("s", config=CONFIG)
        twice = [pb.Header(name="a", value=b"1"), pb.Header(name="a", value=b"2")]
        long = [pb.Header(name="a" * 70_000)]
        last = 2**63 - 1
        for key, request, words in (
            ("Append.Append", pb.AppendRequest(stream="s", records=[pb.Record(headers=twice)]), "a more than once"),
            ("Append.Append", pb.AppendRequest(stream="s", records=[pb.Record(headers=long)]), "at most 65535 bytes"),
            (
                "Append.Append",
                pb.AppendRequest(
                    stream="s", values=[b"1", b"2"], producer=pb.ProducerRef(name="p", sequence=last), monotonic=True
                ),
                "numbers its records",
            ),
            ("Append.OpenProducer", pb.OpenProducerRequest(stream="s", producer="p", epoch=last), "the epoch of"),
            ("Segments.PutHold", pb.PutHoldRequest(stream="s", name="h", until_ms=last), "that is no date"),
        ):
            with pytest.raises(StreamConfigError, match=words):
                await namespace.channels.call(key, request, stream="s")
        stream = await namespace.open("s")
        assert await stream.count() == 0
        async with stream.writer() as writer:
            await writer.append(b"v")
        async with asyncio.timeout(10 * stretch()):
            reply = await namespace.channels.call("Read.GetSplits", pb.SplitsRequest(stream="s", target=last))
        assert 1 <= len(reply.ranges) <= 2


STREAM = Resource.parse("streams:s")
HOLDERS = Policy(
    Mode.ENFORCE,
    (
        Grant(Subject.parse("audit"), frozenset({Right.READ, Right.HOLD}), STREAM),
        Grant(Subject.parse("etl"), frozenset({Right.READ, Right.HOLD}), STREAM),
        Grant(Subject.parse("boss"), frozenset({Right.ADMINISTER}), STREAM),
    ),
)


def by(name: str, policy: Policy = HOLDERS, told: list[str] | None = None) -> GrpcCall:
    """A call by somebody who has shown this name."""

    def tell(who: Principal, denial: Denial) -> None:
        if told is not None:
            told.append(f"{who} {denial.right}")

    return GrpcCall(Caller(name), permissions=CallerRights(lambda: policy, tell))


@pytest.mark.rule("X12")
async def test_a_hold_is_changed_and_released_by_who_has_put_it_or_by_an_administrator(tmp_path: Path) -> None:
    """Cause: whoever might read a stream could narrow or release the hold of an audit, and retention then deleted what
    it kept."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        await namespace.create("s", config=CONFIG)
        assert gateway._table is not None
        calls = SegmentCalls(gateway._table)
        put, release = pb.PutHoldRequest(stream="s", name="h"), pb.DeleteHoldRequest(stream="s", name="h")
        assert (await calls.put_hold(put, by("audit"))).by == "audit"
        for change in (calls.put_hold(put, by("etl")), calls.delete_hold(release, by("etl"))):
            with pytest.raises(StreamAccessError, match=r"etl may not use stream s \(no right to administer\)"):
                await change
        stream = await namespace.open("s")
        assert [(hold.name, hold.by) for hold in await stream.holds()] == [("h", "audit")]
        kept = pb.PutHoldRequest(stream="s", name="h", note="until the end of the year")
        assert (await calls.put_hold(kept, by("audit"))).note == "until the end of the year"
        assert (await calls.put_hold(put, by("boss"))).by == "boss", "it is the administrator's from now on"
        with pytest.raises(StreamAccessError):
            await calls.delete_hold(release, by("audit"))
        await calls.delete_hold(release, by("boss"))
        assert await stream.holds() == ()
        with pytest.raises(HoldNotFoundError):
            await calls.delete_hold(release, by("etl"))


@pytest.mark.rule("M8")
async def test_a_release_that_comes_late_removes_no_later_hold_of_the_name(tmp_path: Path) -> None:
    """A gateway that stood still goes on with a call that its client has repeated elsewhere since."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        old = await stream.hold("h", note="old")
        assert gateway._table is not None
        calls, nobody = SegmentCalls(gateway._table), GrpcCall(None)
        late = pb.DeleteHoldRequest(stream="s", name="h", only=put_hold(old))
        await calls.delete_hold(late, nobody)
        assert await stream.holds() == ()
        await stream.hold("h", note="new")
        await calls.delete_hold(late, nobody)
        assert [hold.note for hold in await stream.holds()] == ["new"]


@pytest.mark.rule("X12")
async def test_a_hold_of_which_nobody_knows_who_put_it_is_nobodys_own(tmp_path: Path) -> None:
    """Those of earlier versions, and those that were put without a gateway, or where it asks nobody."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        assert (await stream.hold("h")).by == ""
        assert gateway._table is not None
        calls = SegmentCalls(gateway._table)
        release = pb.DeleteHoldRequest(stream="s", name="h")
        for caller in (by("etl"), by(""), GrpcCall(None, permissions=CallerRights(lambda: HOLDERS))):
            with pytest.raises(StreamAccessError, match="no right to administer"):
                await calls.delete_hold(release, caller)
        told: list[str] = []
        observed = Policy(Mode.OBSERVE, HOLDERS.grants)
        await calls.delete_hold(release, by("etl", observed, told))
        assert told == ["etl administer"], "it is told, and done"
        await stream.hold("h")
        await stream.release_hold("h")
