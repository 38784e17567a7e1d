"""What becomes of a stream, through a gateway in the same loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from segments.errors import (
    HoldNotFoundError,
    SeekFormatError,
    StreamConfigError,
    StreamSealedError,
    StreamUnavailableError,
)
from segments.gateway.calls.cursor_calls import CursorCalls
from segments.gateway.calls.segment_calls import SegmentCalls
from segments.gateway.calls.stream_calls import StreamCalls
from segments.gateway.guard.grpc_call import GrpcCall
from segments.position import EARLIEST, LATEST, Position
from segments.record import Record, from_ms
from segments.remote import connect
from segments.seek import AtSeqNo
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_tail_gets_records_as_they_come_and_ends_when_the_stream_is_sealed(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.read(follow=True) as reader, stream.writer() as writer:
            assert await reader.next(timeout=0.1) is None
            for number in range(5):
                await writer.append(b"%d" % number)
                record = await reader.next(timeout=10)
                assert record is not None
                assert record.seq_no == number  # type: ignore[union-attr]
            await stream.roll()
            await writer.append(b"after")
            assert (await reader.next(timeout=10)).value == b"after"  # type: ignore[union-attr]
            await reader.seek(EARLIEST)
            assert len(await reader.next_batch(wait=10)) >= 1
            assert await stream.seal() == writer.tail
            with pytest.raises(StreamSealedError):
                await writer.append(b"no")
            async with asyncio.timeout(20):
                while await reader.next() is not None:
                    pass
            assert reader.ended


async def test_splits_reasons_and_a_listing_are_those_of_the_library(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            for _ in range(3):
                await writer.append_batch([bytes(100)] * 50)
                await stream.roll()
        ranges = await stream.splits(target=3)
        assert len(ranges) == 3 and (ranges[0].start, ranges[-1].stop) == (
            await stream.find(EARLIEST),
            await stream.tail_position(),
        )
        assert sum(each.records for each in ranges) == 150 and all(each.bytes > 5_000 for each in ranges)
        with pytest.raises(ValueError, match="at least one range"):
            await stream.splits(target=0)
        kept = (await stream.explain_retention()).segments
        assert [each.segment.number for each in kept][:3] == [1, 2, 3]
        assert all(not each.goes and each.text for each in kept)
        (info,) = [info async for info in namespace.infos()]
        assert (info.name, info.stream_id, info.sealed) == ("s", stream.id, False) and info.segments >= 3


async def test_what_is_known_of_a_stream_is_what_the_library_knows(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            for number in range(3):
                await writer.append_batch([Record(b"v", txid=number, event_time=from_ms(7))] * 50)
                await stream.roll()
        await stream.hold("audit", AtSeqNo(60), until=from_ms(99_000_000_000_000), note="case 7")
        async with stream.cursor("c", start=AtSeqNo(70)):
            pass
        assert gateway._namespace is not None
        direct = await gateway._namespace.open("s")
        shown, known = await stream.show(), await direct.show()
        assert replace(shown, at_ms=known.at_ms) == known
        assert len(shown.segments) >= 4 and [hold.name for hold in shown.holds] == ["audit"]
        assert await stream.info() == await direct.info() and await stream.holds() == await direct.holds()
        assert await stream.segments() == await direct.segments()
        assert await stream.explain_retention() == await direct.explain_retention()
        await direct.configure({"retention.max_records": 10})
        assert (await stream.read_config()).retention.max_records == 10, "also if it was changed elsewhere"
        planned = await stream.explain_retention()
        assert planned == await direct.explain_retention() and [each.number for each in planned.going] == [1]
        done = await stream.apply_retention()
        assert done.deleted == (known.segments[0].ledger_id,) and [each.number for each in done.report.going] == [1]
        assert (await stream.show()).info.start == Position(2, 0, 0)


async def test_what_a_gateway_does_not_do_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Cause: a stream behind gateways had no watch(), and a reader's option was Python's TypeError."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        with pytest.raises(StreamConfigError, match="do not tell the changes of one stream, and s is behind"):
            stream.watch()
        with pytest.raises(StreamConfigError, match="takes stop and follow and on_gap, and not look_s, p"):
            stream.read(look_s=1, patience_s=2)
        with pytest.raises(StreamConfigError, match="a writer behind gateways takes no options, and not owner"):
            await stream.writer(owner="me")
        with pytest.raises(SeekFormatError, match="is a text and no position"):
            await stream.count("earliest")  # type: ignore[arg-type]


@pytest.mark.rule("M8")
async def test_what_is_hidden_or_removed_is_what_was_meant_when_the_answer_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call is done, and something comes under its name, or behind the stream's end, before it is made again."""
    meanwhile: dict[str, Callable[[], Awaitable[object]]] = {}

    def answered_late(calls: type, method: str) -> None:
        plain = getattr(calls, method)

        async def late(self: object, request: object, call: GrpcCall) -> object:
            reply = await plain(self, request, call)
            if (do := meanwhile.pop(f"{calls.__name__}.{method}", None)) is not None:
                await do()
                raise StreamUnavailableError("this gateway goes away")
            return reply

        monkeypatch.setattr(calls, method, late)

    for calls, method in ((SegmentCalls, "truncate"), (SegmentCalls, "delete_hold"), (CursorCalls, "delete")):
        answered_late(calls, method)
    answered_late(StreamCalls, "delete")
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        here = gateway._namespace
        assert here is not None
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append(b"0")
            meanwhile["SegmentCalls.truncate"] = lambda: writer.append(b"1")
            await stream.truncate(LATEST)
            first = await stream.first()
            assert first is not None and first.value == b"1"
        await stream.hold("h", note="old")
        same = await here.open("s")
        meanwhile["SegmentCalls.delete_hold"] = lambda: same.hold("h", note="new")
        await stream.release_hold("h")
        assert [hold.note for hold in await stream.holds()] == ["new"]
        await stream.release_hold("h")
        with pytest.raises(HoldNotFoundError):
            await stream.release_hold("h")
        async with same.cursor("c") as cursor:
            await cursor.advance(first)
        meanwhile["CursorCalls.delete"] = lambda: same.cursor("c").make()
        await stream.cursor("c").delete()
        assert (await stream.cursor("c").state()).version.number == 1
        meanwhile["StreamCalls.delete"] = lambda: here.create("s", config=CONFIG)
        await namespace.delete("s", missing_ok=True)
        assert (await namespace.open("s")).id != stream.id and not meanwhile
