"""The stream of the samples: written once, and read for ever."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Final

from bookkeeper import BookKeeper
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
