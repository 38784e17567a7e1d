"""What clients see of appends is in test_command and in tests/segments/remote; here is what errors become."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bookkeeper.access import (
    Grant,
    Mode,
    Policy,
    Principal,
    QuotaKind,
    QuotaRefusal,
    Resource,
    ResourceKind,
    Right,
    Subject,
)
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from bookkeeper.outcome import Outcome
from bookkeeper.real import SystemClock
from segments.errors import (
    AppendOutcomeUnknownError,
    OwnershipLostError,
    StreamAccessError,
    StreamClosedError,
    StreamNotReadyError,
    StreamOverloadedError,
    TxidOrderError,
)
from segments.gateway.calls.append_calls import AppendCalls, elsewhere, for_the_rest
from segments.gateway.calls.served_streams import ServedStream
from segments.gateway.config import GrpcLimits
from segments.gateway.gateway_metrics import GatewayMetrics
from segments.gateway.guard.grpc_call import CallEndedError, GrpcCall
from segments.protocol import segments_pb2 as pb
from segments.record import ProducerRef, StoredRecord
from segments.write import Producer, Writer
from tests.segments.gateway.clusters import CONFIG, served


def test_a_writer_that_was_lost_is_the_gateways_own_affair() -> None:
    for error in (OwnershipLostError("lost"), StreamClosedError("closed")):
        found = elsewhere(error, "s")
        assert isinstance(found, StreamNotReadyError)
        assert (found.retryable, found.outcome, found.stream) == (True, Outcome.REJECTED, "s")
    unsure = elsewhere(OwnershipLostError("lost", outcome=Outcome.UNKNOWN), "s")
    assert isinstance(unsure, AppendOutcomeUnknownError)
    order = TxidOrderError("order")
    assert elsewhere(order, "s") is order


def test_what_a_call_has_not_answered_was_not_applied_whatever_ended_it() -> None:
    refused = StreamNotReadyError("not now")
    assert for_the_rest(refused) is refused
    rest = for_the_rest(AppendOutcomeUnknownError("who knows", stream="s"))
    assert (rest.outcome, rest.retryable) == (Outcome.REJECTED, True)


async def test_after_a_fail_over_a_streaming_append_ends_and_appends_nothing_more(tmp_path: Path) -> None:
    """A batch must not overtake one that failed with the writer before."""
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        await streams.namespace.create("s", config=CONFIG)
        ownership = (await streams.get("s")).ownership
        calls = AppendCalls(streams, GrpcLimits(), GatewayMetrics(), SystemClock())
        requests: asyncio.Queue[pb.AppendRequest] = asyncio.Queue()

        async def sent() -> AsyncIterator[pb.AppendRequest]:
            while True:
                yield await requests.get()

        replies = calls.append_stream(sent(), GrpcCall(None))
        assert (await anext(replies)).window.records > 0
        requests.put_nowait(pb.AppendRequest(stream="s", values=[b"before"]))
        assert (await anext(replies)).result.position.segment == 1
        await ownership.release()
        writer = await ownership.writer()
        requests.put_nowait(pb.AppendRequest(stream="s", values=[b"behind"]))
        assert (await anext(replies)).error.code == "stream-not-ready"
        with pytest.raises(StreamNotReadyError, match="taken over meanwhile: append in another call"):
            await anext(replies)
        assert writer.next_seq_no == 1


@pytest.mark.rule("X12c")
async def test_nobody_appends_under_the_name_of_somebody_elses_producer_but_who_may_administer(tmp_path: Path) -> None:
    """Cause: a tenant with the right to append opened another one's producer, and appended under the numbers that came
    next: the owner's own records then counted as there already, and were lost without a word."""
    async with served(tmp_path) as gateway:
        table = gateway._table
        assert table is not None
        stream = await table.namespace.create("s", config=CONFIG)
        calls = AppendCalls(table, GrpcLimits(), GatewayMetrics(), SystemClock())

        def caller(who: str, *also: Right) -> GrpcCall:
            grant = Grant(Subject.parse(who), frozenset((Right.APPEND, *also)), Resource(ResourceKind.STREAMS, "s"))
            return GrpcCall(Caller(who), permissions=CallerRights(lambda: Policy(Mode.ENFORCE, (grant,))))

        etl, rival, boss = caller("etl"), caller("rival"), caller("boss", Right.ADMINISTER)
        opened = await calls.open_producer(pb.OpenProducerRequest(stream="s", producer="loader"), etl)

        async def append(call: GrpcCall, sequence: int, value: bytes, name: str = "loader") -> pb.AppendResult:
            ref = pb.ProducerRef(name=name, epoch=opened.epoch, sequence=sequence)
            request = pb.AppendRequest(stream="s", values=[value], producer=ref)
            return (await calls.append(request, call)).result

        async def append_in_a_stream(call: GrpcCall, sequence: int) -> pb.AppendReply:
            async def sent() -> AsyncIterator[pb.AppendRequest]:
                ref = pb.ProducerRef(name="loader", epoch=opened.epoch, sequence=sequence)
                yield pb.AppendRequest(stream="s", values=[b"forged"], producer=ref)

            replies = calls.append_stream(sent(), call)
            await anext(replies)
            return await anext(replies)

        await append(etl, 0, b"a")
        said = "Producer loader of this stream belongs to etl.*bk stream producer hand-over s loader rival"
        with pytest.raises(StreamAccessError, match=said):
            await calls.open_producer(pb.OpenProducerRequest(stream="s", producer="loader"), rival)
        with pytest.raises(StreamAccessError, match=said):
            await append(rival, 1, b"forged")
        assert (await append_in_a_stream(rival, 1)).error.code == "stream-access"
        await append(rival, 0, b"b", "rivals-own")
        assert not (await append(etl, 1, b"c")).duplicate
        await append(boss, 2, b"d")
        assert await stream.producer_owners() == {"loader": "etl", "rivals-own": "rival"}
        async with stream.read() as reader:
            found = [record.value async for record in reader if isinstance(record, StoredRecord)]
        assert found == [b"a", b"b", b"c", b"d"]


async def test_a_client_that_reads_no_refusals_is_not_read_for_ever(tmp_path: Path) -> None:
    """Each batch that cannot be had an answer waiting in memory, however many came."""
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        await streams.namespace.create("s", config=CONFIG)
        calls = AppendCalls(streams, GrpcLimits(window_records=8), GatewayMetrics(), SystemClock())
        taken = 0

        async def sent() -> AsyncIterator[pb.AppendRequest]:
            nonlocal taken
            while taken < 100:
                taken += 1
                yield pb.AppendRequest(stream="s")  # without a record
            yield pb.AppendRequest(stream="s", values=[b"good"])

        replies = calls.append_stream(sent(), GrpcCall(None))
        assert (await anext(replies)).window.records == 8
        assert (await anext(replies)).error.code == "stream-config"
        for _ in range(1000):
            await asyncio.sleep(0)
        assert taken <= 8 + 2, "a window, one that was answered, and one in hand"
        rest = [reply async for reply in replies]
        assert [reply.WhichOneof("reply") for reply in rest] == [*["error"] * 99, "result"]


async def test_a_batch_for_which_room_is_gone_again_waits_and_is_not_overtaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While its producer was opened others took the room. It was refused, and those behind it went on."""
    opening = ServedStream.producer

    async def filled(self: ServedStream, writer: Writer, ref: ProducerRef, *, monotonic: bool) -> Producer:
        made = await opening(self, writer, ref, monotonic=monotonic)
        writer.append_batch_nowait([bytes(5000)])
        await asyncio.sleep(0)  # it is sent
        assert not writer.has_room
        return made

    monkeypatch.setattr(ServedStream, "producer", filled)
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        await streams.namespace.create("s", config=CONFIG.patched({"limits.pending_bytes": 3000}))
        calls = AppendCalls(streams, GrpcLimits(), GatewayMetrics(), SystemClock())

        async def sent() -> AsyncIterator[pb.AppendRequest]:
            for number in range(3):
                ref = pb.ProducerRef(name="p", sequence=number)
                yield pb.AppendRequest(stream="s", values=[b"%d" % number], producer=ref, monotonic=True)

        replies = [reply async for reply in calls.append_stream(sent(), GrpcCall(None))]
        assert [reply.result.seq_no for reply in replies[1:]] == [1, 2, 3]


@pytest.mark.rule("X12")
async def test_a_stream_of_appends_waits_for_its_callers_rates_and_a_single_one_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        await streams.namespace.create("s", config=CONFIG)
        answers: list[QuotaRefusal | None] = []
        asked: list[tuple[int, int]] = []

        def take(principal: Principal, entries: int, size: int) -> QuotaRefusal | None:
            asked.append((entries, size))
            return answers.pop(0)

        calls = AppendCalls(streams, GrpcLimits(), GatewayMetrics(), SystemClock())
        call = GrpcCall(Caller("a"), permissions=CallerRights(take=take))
        slower = QuotaRefusal("principal a", QuotaKind.ADDS_PER_S, 1, 0.01)

        async def sent() -> AsyncIterator[pb.AppendRequest]:
            yield pb.AppendRequest(stream="s", values=[b"one", b"two"])

        answers += [slower, slower, None]
        replies = [reply async for reply in calls.append_stream(sent(), call)]
        assert replies[-1].result.seq_no == 0
        assert asked == [(2, 6)] * 3, "it is asked again until it is admitted"
        answers += [slower]
        with pytest.raises(StreamOverloadedError, match="adds_per_s of principal a, 1, is used up: come back in 10 ms"):
            await calls.append(pb.AppendRequest(stream="s", values=[b"three"]), call)
        answers += [None]
        reply = await calls.append(pb.AppendRequest(stream="s", values=[b"three"]), call)
        assert reply.result.seq_no == 2, "what was refused was not appended"


@pytest.mark.rule("X15")
async def test_a_stream_of_appends_that_has_to_end_answers_first_what_it_has_taken(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        await streams.namespace.create("s", config=CONFIG)
        calls = AppendCalls(streams, GrpcLimits(), GatewayMetrics(), SystemClock())
        ended = CallEndedError("the credentials of this call are no longer valid", why="revoked")

        def take(principal: Principal, entries: int, size: int) -> None:
            assert call.on_end is not None
            call.on_end(ended)  # while the batch is being taken

        call = GrpcCall(Caller("a"), permissions=CallerRights(take=take))
        never = asyncio.Event()

        async def sent() -> AsyncIterator[pb.AppendRequest]:
            yield pb.AppendRequest(stream="s", values=[b"taken"])
            await never.wait()

        replies = calls.append_stream(sent(), call)
        assert (await anext(replies)).window.records > 0
        reply = await anext(replies)
        assert reply.result.position.segment == 1 or reply.error.outcome == pb.OUTCOME_NOT_APPLIED
        with pytest.raises(CallEndedError):
            await anext(replies)
