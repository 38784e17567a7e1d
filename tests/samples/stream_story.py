"""The streams of the samples: written once, and read for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final
from unittest.mock import patch

from bookkeeper import BookKeeper
from segments.chain import stream_chain, stream_pages
from segments.config import ProducerPolicy, RollPolicy, StreamConfig
from segments.namespace import StreamNamespace
from segments.position import Position
from segments.record import Record
from segments.seek import AtCursor, AtSeqNo, AtTxId

STREAM: Final = "shop/orders"
SETTINGS: Final = StreamConfig(
    roll=RollPolicy(max_records=40, min_age_s=0),
    producers=ProducerPolicy(snapshot_every_bytes=2_000),
    compression="lz4",
)
TRUNCATED: Final = 7
RECORDS: Final = 100
CONSUMED: Final = 50
LARGE: Final = bytes(range(256)) * 6_000
"""Larger than an entry: it is stored in pieces."""

LONG: Final = "shop/visits"
LONG_SETTINGS: Final = StreamConfig(roll=RollPolicy(min_age_s=0))
LONG_RECORDS: Final = 60
LONG_TRUNCATED: Final = 10
"""In the second page, which is kept as long as one of its segments is."""


def sample_record(number: int) -> Record:
    """Record ``number`` of the stream, with everything that a record can have."""
    return Record(
        b"order %d " % number * (number % 5),
        txid=10 * number,
        key=b"customer %d" % (number % 3) if number % 4 else None,
        headers={"trace": b"%d" % number} if number % 7 == 0 else {},
        event_time=datetime(2026, 11, 23, tzinfo=UTC) + timedelta(seconds=number) if number % 2 else None,
    )


async def write_stream(bk: BookKeeper) -> AsyncExitStack:
    """Three segments, of which the last is open; a large record; a cursor, a hold, a beginning that was moved.

    The writer stays open: close what is returned, or kill the process.
    """
    namespace = StreamNamespace(bk)
    stream = await namespace.create(STREAM, config=SETTINGS)
    alive = AsyncExitStack()
    producer = await alive.enter_async_context(stream.producer("shop"))
    for number in range(RECORDS):
        await producer.append(sample_record(number), seq=number)
    await producer.append(Record(LARGE, txid=10 * RECORDS), seq=RECORDS)
    await stream.truncate(AtSeqNo(TRUNCATED))
    await stream.hold("backup", until=None)
    async with stream.cursor("billing") as cursor:
        await cursor.advance(await stream.find(AtSeqNo(CONSUMED)))
    return alive


async def read_stream(bk: BookKeeper) -> None:
    """Everything is as it was written; a duplicate is known; the stream goes on."""
    stream = await StreamNamespace(bk).open(STREAM)
    assert stream.config == SETTINGS and [hold.name for hold in await stream.holds()] == ["backup"]
    async with stream.producer("shop") as producer:
        again = await producer.append(sample_record(RECORDS - 1), seq=RECORDS - 1)
        assert again.duplicate and isinstance(again.position, Position)
        async with stream.read() as reader:
            found = [record async for record in reader]
    records = [record.as_record() for record in found]  # type: ignore[union-attr]  # there is no gap
    assert records[: RECORDS - TRUNCATED] == [sample_record(n) for n in range(TRUNCATED, RECORDS)]
    assert records[RECORDS - TRUNCATED] == Record(LARGE, txid=10 * RECORDS) and len(records) == RECORDS - TRUNCATED + 1
    assert [record.seq_no for record in found] == list(range(TRUNCATED, RECORDS + 1))  # type: ignore[union-attr]
    assert again.position == found[RECORDS - 1 - TRUNCATED].position  # type: ignore[union-attr]
    assert await stream.find(AtTxId(300)) == found[30 - TRUNCATED].position  # type: ignore[union-attr]
    assert await stream.find(AtCursor("billing")) == (await stream.find(AtSeqNo(CONSUMED))).next


@contextmanager
def small_pages() -> Iterator[None]:
    """As if a record had room for few segments: the format is the same, and nobody writes thousands of segments."""
    with (
        patch.object(stream_chain, "FOLD_AT", 8),
        patch.object(stream_chain, "PAGE_SEGMENTS", 3),
        patch.object(stream_pages, "FOLD_AT", 8),
    ):
        yield


async def write_long_stream(bk: BookKeeper) -> AsyncExitStack:
    """A stream whose old segments are in pages. The writer stays open: close what is returned, or kill the process."""
    stream = await StreamNamespace(bk).create(LONG, config=LONG_SETTINGS)
    alive = AsyncExitStack()
    producer = await alive.enter_async_context(stream.producer("door"))
    for number in range(LONG_RECORDS):
        await producer.append(b"visit %d" % number, seq=number)
        if number % 3 == 2:
            await producer.writer.roll()
    await stream.truncate(AtSeqNo(LONG_TRUNCATED))
    assert len((await stream.node.read())[0].pages) >= 2
    return alive


async def read_long_stream(bk: BookKeeper) -> None:
    """Every record behind the beginning, also of segments that only pages list; and the stream goes on."""
    stream = await StreamNamespace(bk).open(LONG)
    chain, _ = await stream.node.read()
    assert len(chain.pages) >= 2
    async with stream.producer("door") as producer:
        assert (await producer.append(b"", seq=LONG_RECORDS - 1)).duplicate
    async with stream.read() as reader:
        found = [(record.seq_no, record.value) async for record in reader]  # type: ignore[union-attr]  # there is no gap
    assert found == [(number, b"visit %d" % number) for number in range(LONG_TRUNCATED, LONG_RECORDS)]
    assert (await stream.find(AtSeqNo(LONG_TRUNCATED + 1))).segment < chain.recent[0].number
