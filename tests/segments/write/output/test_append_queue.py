"""What waits for room, what shares an entry, and what is refused."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest

from segments.config import FlushPolicy, StreamConfig, StreamLimits
from segments.entries.columns import RecordColumns
from segments.errors import (
    StreamOverloadedError,
    TxidOrderError,
)
from segments.record import Record
from tests.segments.fake import Cluster, check_stream, stream_on, values_of
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_what_is_no_record_is_refused_and_spoils_no_other() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    naive = datetime(2026, 11, 23)
    async with stream.writer() as writer:
        good = writer.append_nowait(b"good")
        for bad, error in [
            ("text", TypeError),
            (Record("text"), TypeError),  # type: ignore[arg-type]
            (Record(b"", key="text"), TypeError),  # type: ignore[arg-type]
            (Record(b"", event_time=naive), ValueError),
            (Record(b"", headers={"a" * 70_000: b""}), ValueError),
            (Record(b"", txid=2**63), OverflowError),
        ]:
            with pytest.raises(error):
                writer.append_nowait(bad)  # type: ignore[arg-type]
        changing = bytearray(b"as it was")
        copied = writer.append_nowait(changing)  # type: ignore[arg-type]
        changing[:2] = b"XX"
        await good
        await copied
    assert await values_of(cluster, stream) == [b"good", b"as it was"]


@in_virtual_time
async def test_pending_bytes_are_bounded_and_those_who_wait_longest_come_first() -> None:
    """SEG-47: append_nowait refuses, append waits; nothing grows without a bound."""
    cluster = Cluster()
    config = StreamConfig(limits=StreamLimits(pending_bytes=10_000), flush=FlushPolicy(max_bytes=1000))
    stream = await stream_on(cluster, config=config)
    async with stream.writer() as writer:
        taken = 0
        with pytest.raises(StreamOverloadedError, match=r"limits\.pending_bytes allows 10000"):
            while True:
                writer.append_nowait(bytes(500))
                taken += 1
        assert 10 <= taken <= 21
        assert writer.pending_bytes <= 11_000
        results = await asyncio.gather(*(writer.append(b"%02d" % number) for number in range(50)))
        assert [result.seq_no for result in results] == list(range(taken, taken + 50))
        await writer.room()
        await writer.append(b"again")
    assert len(await values_of(cluster, stream)) == taken + 51


@in_virtual_time
async def test_a_ledger_without_room_holds_entries_back_in_their_order() -> None:
    cluster = Cluster()
    cluster.room = 2
    stream = await stream_on(cluster, config=StreamConfig(flush=FlushPolicy(max_bytes=200)))
    async with stream.writer() as writer:
        results = await asyncio.gather(*(writer.append(b"%03d" % number + bytes(100)) for number in range(100)))
        assert [result.seq_no for result in results] == list(range(100))
    assert [value[:3] for value in await values_of(cluster, stream)] == [b"%03d" % number for number in range(100)]
    await check_stream(cluster, stream)


@in_virtual_time
async def test_what_lingers_is_sent_when_its_time_is_up_or_the_entry_is_full() -> None:
    """SEG-46: what comes within the linger shares an entry."""
    cluster = Cluster()
    stream = await stream_on(cluster, config=StreamConfig(flush=FlushPolicy(linger_ms=50, max_records=10)))
    loop = asyncio.get_running_loop()
    async with stream.writer() as writer:
        began = loop.time()
        first = writer.append_nowait(b"1")
        await asyncio.sleep(0.02)
        second = writer.append_nowait(b"2")
        assert (await first).position.entry == (await second).position.entry
        assert 0.05 <= loop.time() - began < 0.06
        began = loop.time()
        await asyncio.gather(*(writer.append_nowait(b"x") for _ in range(10)))
        assert loop.time() - began < 0.01
        waiting = writer.append_nowait(b"3")
        assert await writer.flush() == (await waiting).position


@in_virtual_time
async def test_columns_whose_transaction_ids_fall_are_refused_and_others_are_not_looked_at() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster, config=StreamConfig(txid="application"))
    async with stream.writer() as writer:
        await writer.append_batch(RecordColumns.of_values([b"a", b"b"], txids=[5, 7]))
        await writer.append_batch(RecordColumns.of_values([b"c"]))
        with pytest.raises(TxidOrderError, match="transaction id 6 is lower than 7"):
            await writer.append_batch(RecordColumns.of_values([b"d", b"e"], txids=[6, 8]))
        assert writer.last_txid == 7
    assert await values_of(cluster, stream) == [b"a", b"b", b"c"]
