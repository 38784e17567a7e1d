"""Cursors through a gateway in the same loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segments.cursors.cursor_state import CursorChange
from segments.errors import (
    CursorConflictError,
    CursorFullError,
    CursorNotFoundError,
    CursorVersionError,
    PositionFormatError,
    StreamClosedError,
    StreamUnavailableError,
)
from segments.namespace import connect as connect_cluster
from segments.position import EARLIEST, LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.record import StoredRecord
from segments.remote import GatewayCredentials, RemoteCursor, RemoteReader, RemoteStream, connect
from segments.remote.gateway_channels import GatewayChannels
from segments.seek import AtSeqNo
from segments.stream import Stream
from tests.segments.gateway.clusters import CONFIG, served


async def records_of(reader: RemoteReader) -> list[StoredRecord]:
    async with reader:
        return [record async for record in reader if isinstance(record, StoredRecord)]


async def test_a_cursor_moves_and_is_read_from(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append_batch([b"%d" % number for number in range(10)])
        with pytest.raises(CursorNotFoundError):
            await stream.cursor("billing", create=False).open()
        async with stream.cursor("billing", start=AtSeqNo(2)) as cursor:
            records = await records_of(cursor.read())
            assert [record.seq_no for record in records] == list(range(2, 10))
            await cursor.ack(records[2], records[1].position)
            assert await cursor.position() == records[0].position
            moved = await cursor.advance(records[0], expect=records[0].position)
            assert moved.mark == (await cursor.state()).mark == (5, records[3].position)
            with pytest.raises(CursorConflictError):
                await cursor.advance(records[5], expect=records[0].position)
            assert [record.seq_no for record in await records_of(cursor.read(stop=AtSeqNo(8)))] == [5, 6, 7]
            assert await cursor.reset(AtSeqNo(1)) == (await stream.find(AtSeqNo(1)))
            history = await cursor.history()
            assert history[0].number > history[-1].number and history[0].change is CursorChange.RESET
        async with stream.cursor("billing") as again:
            assert (await stream.cursors()).keys() == {"billing"} and await again.position() == history[0].mark.position
            await again.delete(missing_ok=False)
            await again.delete()
            with pytest.raises(CursorNotFoundError):
                await again.delete(missing_ok=False)
        assert await stream.cursors() == {}


@asynccontextmanager
async def ten_records(directory: Path) -> AsyncIterator[tuple[RemoteStream, Stream]]:
    """A stream of ten records, through a gateway and directly."""
    async with served(directory) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            for number in range(10):
                await writer.append(b"%d" % number)
        assert gateway._namespace is not None
        async with connect_cluster("", client=gateway._namespace.client) as cluster:
            yield stream, await cluster.open("s")


async def test_a_reader_by_a_cursor_passes_over_what_is_done_beyond_its_place(tmp_path: Path) -> None:
    """A reader by a remote cursor handed out again what was acknowledged beyond its place."""
    async with ten_records(tmp_path) as (remote, direct):
        for stream, name in ((remote, "far"), (direct, "near")):
            async with stream.cursor(name) as cursor:
                records = await records_of(cursor.read())  # type: ignore[arg-type]
                await cursor.ack(records[0], records[3], records[4].position, records[8])
                again = [record.seq_no for record in await records_of(cursor.read())]  # type: ignore[arg-type]
                assert again == [1, 2, 5, 6, 7, 9], name
        far, near = await remote.cursor("far").state(), await direct.cursor("near").state()
        assert (far.mark, far.ranges, far.epoch, far.owner) == (near.mark, near.ranges, near.epoch, near.owner)
        assert [(each.first, each.end) for each in far.ranges] == [(3, 5), (8, 9)]
        assert (await remote.cursors())["far"].ranges == near.ranges
        lags = await remote.cursor("far").backlog(precise=True), await direct.cursor("near").backlog(precise=True)
        assert lags[0][:2] == lags[1][:2] == (6, lags[1].bytes) and lags[0].seconds is not None
        async with remote.cursor("far") as cursor, cursor.read(follow=True) as reader:
            found = [await reader.next(timeout=10) for _ in range(6)]
            assert [record.seq_no for record in found if isinstance(record, StoredRecord)] == [1, 2, 5, 6, 7, 9]


async def test_whoever_opens_a_cursor_fences_its_former_owner(tmp_path: Path) -> None:
    async with ten_records(tmp_path) as (remote, direct):
        first = await remote.cursor("c", owner="one").open()
        assert (await first.state()).owner == "one"
        with pytest.raises(CursorConflictError, match="in use by one"):
            await remote.cursor("c").reset(EARLIEST)
        second = await direct.cursor("c", owner="two").open()
        place = await remote.find(AtSeqNo(4))
        for late in (first.advance(place), first.ack(place), first.reset(EARLIEST), first.restore(1), first.skip(1)):
            with pytest.raises(CursorConflictError, match="taken over by two"):
                await late
        assert (await second.advance(place)).mark.seq_no == 5
        third = await remote.cursor("c").open()
        with pytest.raises(CursorConflictError):
            await second.advance(await remote.find(AtSeqNo(6)))
        assert (await third.state()).epoch == 3
        await third.close()
        assert (await third.state()).owner == ""
        await third.close()
        with pytest.raises(StreamClosedError, match="is not open"):
            await third.ack(place)
        with pytest.raises(StreamClosedError, match="is not open"):
            third.read()
        await second.abandon()
        await remote.cursor("c").delete()
        again = await remote.cursor("c").open()
        assert (await again.state()).epoch == 1
        with pytest.raises(CursorConflictError):
            await first.advance(place)  # its epoch is that of another cursor
        await again.abandon()


async def test_acknowledgements_share_a_record_also_when_they_come_together(tmp_path: Path) -> None:
    async with ten_records(tmp_path) as (remote, _):
        async with remote.cursor("c") as cursor, remote.read() as reader:
            records = list(await reader.next_batch())
            await asyncio.gather(*(cursor.ack(record) for record in records[::2]))
            assert (await cursor.state()).ranges.records == 4
            await cursor.ack_later(*records[:4])
            assert (await cursor.state()).ranges.records == 4, "nobody waits for it"
            await cursor.flush()
            assert (await cursor.state()).mark.seq_no == 5
            await cursor.ack_later(records[9])
        assert [(each.first, each.end) for each in (await remote.cursor("c").state()).ranges] == [(6, 7), (8, 10)]


async def test_two_who_act_for_one_owner_lose_nothing(tmp_path: Path) -> None:
    """Calls of one owner may go to several gateways at a time."""
    async with ten_records(tmp_path) as (remote, _):
        one = await remote.cursor("c").open()
        two = remote.cursor("c")
        two._claim = one._claim
        async with remote.read() as reader:
            records = list(await reader.next_batch())
        await asyncio.gather(*((one, two)[n % 2].ack(records[n]) for n in (1, 3, 5, 7, 8, 9)))
        assert (await one.state()).ranges.records == 6
        await one.close()


async def test_a_cursor_has_bounds_places_properties_and_a_history_that_it_goes_back_in(tmp_path: Path) -> None:
    async with ten_records(tmp_path) as (remote, direct):
        async with remote.cursor("c", ranges_max=2) as cursor:
            records = await records_of(cursor.read())
            with pytest.raises(CursorFullError, match="2 separate ranges"):
                await cursor.ack(records[2], records[4], records[6])
            assert len((await cursor.state()).ranges) == 2
            await cursor.ack_later(records[8])
            with pytest.raises(CursorFullError):
                await cursor.flush()
            await cursor.ack(records[0], records[1], records[3])
            await cursor.flush()
            assert await cursor.skip(2) == records[7].position
            assert await cursor.skip(100, count_acked=True) == await remote.find(LATEST)
            assert await cursor.set_properties({"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
            assert await cursor.set_properties({"a": None}) == {"b": "2"} == await cursor.properties()
            with pytest.raises(PositionFormatError, match="no record at position"):
                await cursor.ack(records[-1].position.next)
        here, there = await remote.cursor("c").history(100), await direct.cursor("c").history(100)
        assert here == there and len(here) >= 2
        oldest = here[-1]
        assert await remote.cursor("c", owner="someone").restore(oldest) == oldest.mark.position
        state = await direct.cursor("c").state()
        assert (state.version.change, state.mark, state.owner) == (CursorChange.RESTORED, oldest.mark, "")
        with pytest.raises(CursorVersionError, match="is not in its history"):
            await remote.cursor("c").restore(99)


class SlowGateway(GatewayChannels):
    """A gateway that answers when it is told to, and fails once if it shall."""

    def __init__(self) -> None:
        super().__init__(["h:1"], GatewayCredentials())
        self.asked: list[str] = []
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.fails = False

    async def call(
        self, key: str, request: Any, *, stream: str = "", repeat: bool = True, patience_s: float = 0
    ) -> Any:
        self.asked.append(key)
        self.began.set()
        await self.go_on.wait()
        if self.fails:
            self.fails = False
            raise StreamUnavailableError("not now")
        return pb.CursorInfo(name="c", claim=pb.CursorClaim(epoch=1, nonce="n"))


async def test_a_flush_waits_for_what_is_on_its_way_and_sends_it_again_if_it_comes_back() -> None:
    gateway = SlowGateway()
    gateway.go_on.set()
    cursor = await RemoteCursor(gateway, "s", "c", save_every_s=0.0).open()
    gateway.go_on.clear()
    gateway.began.clear()
    await cursor.ack_later(Position(1, 2, 3))
    await gateway.began.wait()
    flushing = asyncio.create_task(cursor.flush())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not flushing.done(), "nobody knows yet whether it is stored"
    gateway.fails = True
    gateway.go_on.set()
    await flushing
    assert gateway.asked == ["Cursors.Claim", "Cursors.Ack", "Cursors.Ack"]
    await cursor.abandon()
    await gateway.close()
