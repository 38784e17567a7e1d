"""Appends: order, positions, atomic batches, large records, transaction ids, back-pressure, the end."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from bookkeeper.outcome import Outcome
from segments.config import StreamConfig, StreamLimits
from segments.entries.columns import RecordColumns
from segments.errors import (
    AppendOutcomeUnknownError,
    OwnershipLostError,
    RecordTooLargeError,
    StreamClosedError,
    StreamSealedError,
    TailMovedError,
    TxidOrderError,
)
from segments.position import Position
from segments.record import AppendResult, Record
from tests.segments.fake import AT_ONCE, Cluster, chain_of, check_stream, records_of, stream_on, values_of
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_futures_resolve_in_order_with_increasing_positions_and_dense_numbers() -> None:
    """SEG-41 SEG-12"""
    cluster = Cluster()
    stream = await stream_on(cluster)
    order: list[AppendResult] = []
    async with stream.writer() as writer:
        for turn in range(20):
            for each in range(turn % 4 + 1):
                future = writer.append_nowait(b"%d-%d" % (turn, each))
                future.add_done_callback(lambda done: order.append(done.result()))
            await asyncio.sleep(0.0004)
        await writer.flush()
        assert writer.pending == 0
        assert writer.tail == order[-1].position
    positions = [result.position for result in order]
    assert positions == sorted(set(positions))
    assert [result.seq_no for result in order] == list(range(len(order)))
    assert len(await values_of(cluster, stream)) == len(order) == sum(turn % 4 + 1 for turn in range(20))
    await check_stream(cluster, stream)


@in_virtual_time
async def test_an_append_behind_entries_without_records_is_sent_when_they_are_durable() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        for _ in range(5):
            await writer.commit()
        async with asyncio.timeout(1):
            assert (await writer.append_nowait(b"behind them")).position == Position(1, 5, 0)


@in_virtual_time
async def test_a_batch_is_in_one_entry_and_its_result_names_both_ends() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        single = writer.append_nowait(b"before")
        batch = await writer.append_batch([b"a", Record(b"b", key=b"k"), b"c"])
        assert (await single).position == Position(1, 0, 0)
        assert (batch.position, batch.last) == (Position(1, 0, 1), Position(1, 0, 3))
        columns = await writer.append_batch(RecordColumns.of_values([b"x", b"y"]))
        assert (columns.position, columns.last, columns.seq_no) == (Position(1, 1, 0), Position(1, 1, 1), 4)
        with pytest.raises(ValueError, match="at least one record"):
            await writer.append_batch([])
    assert await values_of(cluster, stream) == [b"before", b"a", b"b", b"c", b"x", b"y"]


@in_virtual_time
async def test_a_batch_that_is_not_atomic_spans_entries_and_keeps_its_order() -> None:
    """SEG-49"""
    cluster = Cluster()
    stream = await stream_on(cluster)
    values = [b"%06d" % number + bytes(100_000) for number in range(25)]
    async with stream.writer() as writer:
        done = await writer.append_batch(values, atomic=False)
        assert done.position < done.last
        assert done.last.entry > done.position.entry
    assert await values_of(cluster, stream) == values
    await check_stream(cluster, stream)


@in_virtual_time
async def test_a_record_larger_than_an_entry_is_stored_in_pieces_and_stands_at_the_last() -> None:
    """SEG-14"""
    cluster = Cluster()
    stream = await stream_on(cluster)
    large = bytes(range(256)) * 12_000
    async with stream.writer() as writer:
        small = writer.append_nowait(b"small")
        result = await writer.append(large)
        assert (await small).position == Position(1, 0, 0)
        assert result.position == result.last == Position(1, 3, 0)
        assert (await writer.append(b"after")).seq_no == 2
        batch = await writer.append_batch([large, large])
        assert batch.last.slot == 1
    assert await values_of(cluster, stream) == [b"small", large, b"after", large, large]
    await check_stream(cluster, stream)


@in_virtual_time
async def test_a_record_that_is_too_large_is_refused_before_anything_changes() -> None:
    """SEG-05: records that were gathered before are not affected."""
    cluster = Cluster()
    stream = await stream_on(cluster, config=StreamConfig(limits=StreamLimits(record_bytes=1000)))
    async with stream.writer() as writer:
        before = writer.append_nowait(b"before")
        with pytest.raises(RecordTooLargeError, match=r"limits\.record_bytes is 1000"):
            writer.append_nowait(bytes(1001))
        with pytest.raises(RecordTooLargeError):
            await writer.append_batch([bytes(600), bytes(600)])
        await writer.append(bytes(1000))
        assert (await before).seq_no == 0
    assert await values_of(cluster, stream) == [b"before", bytes(1000)]


@in_virtual_time
async def test_all_that_a_record_can_have_is_stored() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    when = datetime(2026, 11, 23, 4, 5, tzinfo=UTC)
    record = Record(b"value", 7, b"key", {"a": b"1"}, when)
    async with stream.writer() as writer:
        first = writer.append_nowait(b"plain", txid=5)
        second = writer.append_nowait(record)
        third = writer.append_nowait(b"none")
        assert [(await each).txid for each in (first, second, third)] == [5, 7, None]
        assert writer.last_txid == 7
    (entry,) = await records_of(cluster, stream)
    plain, full, none = entry.records()
    assert (plain.txid, full.as_record(), none.txid) == (5, record, None)
    (segment,) = (await chain_of(stream)).segments
    assert (segment.contents.first_txid, segment.contents.last_txid) == (5, 7)
    assert segment.contents.min_event_ms == segment.contents.max_event_ms == full.event_ms


@in_virtual_time
async def test_transaction_ids_never_fall_also_not_after_a_take_over() -> None:
    """SEG-52: a lower transaction id is refused, in a segment and at the start of one."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        await writer.append(b"a", txid=10)
        await writer.append(b"b", txid=10)
        with pytest.raises(TxidOrderError) as refused:
            await writer.append(b"c", txid=9)
        assert refused.value.last == 10
        with pytest.raises(TxidOrderError):
            await writer.append_batch([Record(b"d", txid=12), Record(b"e", txid=11)])
        assert (await writer.append(b"none")).txid is None
    abandoned = await stream.writer()
    await abandoned.append(b"f", txid=20)
    async with stream.writer() as writer:
        with pytest.raises(TxidOrderError):
            await writer.append(b"g", txid=19)
        await writer.append(b"h", txid=20)
    assert await values_of(cluster, stream) == [b"a", b"b", b"none", b"f", b"h"]


@in_virtual_time
async def test_a_stream_can_give_transaction_ids_by_the_clock() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster, config=StreamConfig(txid="clock"))
    async with stream.writer() as writer:
        results = [await writer.append(b"a"), await writer.append(Record(b"b", key=b"k"))]
        with pytest.raises(TxidOrderError, match="takes no transaction ids"):
            await writer.append(b"c", txid=1)
    given = [result.txid for result in results]
    assert None not in given
    assert given == sorted(given)  # type: ignore[type-var]


@in_virtual_time
async def test_a_conditional_append_takes_place_only_behind_the_record_it_names() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        first = await writer.append_if(b"first", tail=None)
        with pytest.raises(TailMovedError) as moved:
            await writer.append_if(b"other", tail=None)
        assert moved.value.position == first.position
        second = await writer.append_if(b"second", tail=first.position)
        under_way = writer.append_nowait(b"third")
        with pytest.raises(TailMovedError):
            await writer.append_if(b"other", tail=second.position)
        await under_way
    async with stream.writer() as writer:
        assert (await writer.append_if(b"fourth", tail=(await under_way).position)).seq_no == 3
    assert await values_of(cluster, stream) == [b"first", b"second", b"third", b"fourth"]


@in_virtual_time
async def test_a_caller_with_a_time_limit_learns_that_the_outcome_is_unknown() -> None:
    cluster = Cluster()
    cluster.delay_s = 5.0
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        with pytest.raises(AppendOutcomeUnknownError) as late:
            await writer.append(b"slow", timeout=1.0)
        assert late.value.outcome is Outcome.UNKNOWN
    assert await values_of(cluster, stream) == [b"slow"], "it was not withdrawn"


@in_virtual_time
async def test_a_caller_that_goes_away_does_not_withdraw_its_record() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        task = asyncio.ensure_future(writer.append(b"cancelled"))
        await asyncio.sleep(0)
        task.cancel()
        kept = await writer.append(b"kept")
        assert kept.seq_no == 1
    assert await values_of(cluster, stream) == [b"cancelled", b"kept"]


# -- the end ------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_close_flushes_and_completes_the_segment() -> None:
    """SEG-42: closing flushes."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    writer = await stream.writer()
    pending = [writer.append_nowait(b"%d" % number) for number in range(3)]
    await asyncio.gather(writer.close(), writer.close())
    assert [future.result().seq_no for future in pending] == [0, 1, 2]
    with pytest.raises(StreamClosedError):
        writer.append_nowait(b"late")
    with pytest.raises(StreamClosedError):
        await writer.append(b"late")
    chain = await chain_of(stream)
    assert [segment.is_open for segment in chain.segments] == [False]
    assert (chain.records, chain.owner, chain.next_ledger, chain.removing) == (3, "", None, ())
    assert len(cluster.ledgers) == 1
    await check_stream(cluster, stream)


@in_virtual_time
async def test_abort_does_not_flush_and_fails_what_is_pending() -> None:
    """SEG-42: aborting fails everything that is pending, and the next writer recovers the segment."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    writer = await stream.writer()
    await writer.append(b"durable")
    pending = writer.append_nowait(b"pending")
    await writer.abort()
    await writer.abort()
    with pytest.raises(StreamClosedError) as aborted:
        await pending
    assert aborted.value.outcome in (Outcome.UNKNOWN, Outcome.REJECTED)
    assert (await chain_of(stream)).open_segment is not None
    async with stream.writer() as writer:
        assert (await writer.append(b"next")).seq_no in (1, 2)
    assert (await values_of(cluster, stream))[-1] == b"next"
    await check_stream(cluster, stream)


@in_virtual_time
async def test_abort_ends_a_close_that_is_under_way_at_once() -> None:
    """Bookies that do not answer would hold it up; whoever waits for the close is told."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    writer = await stream.writer()
    await writer.append(b"durable")
    cluster.delay_s = 3600
    pending = writer.append_nowait(b"pending")
    closing = [asyncio.create_task(writer.close()) for _ in range(2)]
    await asyncio.sleep(1)
    began = asyncio.get_running_loop().time()
    await writer.abort()
    assert asyncio.get_running_loop().time() - began < 60 and writer.closed
    with pytest.raises(StreamClosedError, match="aborted"):
        await pending
    for each in closing:
        with pytest.raises(StreamClosedError, match="aborted"):
            await each
    await writer.close()
    cluster.delay_s = 0.001
    async with stream.writer() as writer:
        assert (await writer.append(b"next")).seq_no in (1, 2)
    await check_stream(cluster, stream)


@in_virtual_time
async def test_abort_right_after_close_ends_it_before_it_begins() -> None:
    cluster = Cluster()
    writer = await (await stream_on(cluster)).writer()
    closing = asyncio.create_task(writer.close())
    await asyncio.sleep(0)
    await writer.abort()
    with pytest.raises(StreamClosedError, match="aborted"):
        await closing


@in_virtual_time
async def test_a_writer_without_records_leaves_nothing_behind() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    for _ in range(3):
        async with stream.writer():
            await asyncio.sleep(2)  # the next ledger was made in advance meanwhile
    chain = await chain_of(stream)
    assert (chain.segments, chain.removing, cluster.ledgers) == ((), (), {})


@in_virtual_time
async def test_a_sealed_stream_takes_nothing_more() -> None:
    """SEG-51: sealing ends the stream, with and without records."""
    cluster = Cluster()
    for name, records in (("empty", 0), ("full", 3)):
        stream = await stream_on(cluster, name)
        writer = await stream.writer()
        for _ in range(records):
            writer.append_nowait(b"v")
        assert await writer.seal() == (None if not records else Position(1, 0, 2))
        with pytest.raises(StreamClosedError):
            await writer.append(b"late")
        with pytest.raises(StreamSealedError):
            await stream.writer()
        assert (await chain_of(stream)).sealed


@in_virtual_time
async def test_the_former_writer_learns_that_it_was_overtaken_also_without_appending() -> None:
    """SEG-36 SEG-39"""
    cluster = Cluster()
    first = await (await stream_on(cluster)).writer(owner="first")
    await first.append(b"1")
    stream = await stream_on(cluster)
    async with stream.writer(owner="second", location="host:1") as second:
        await asyncio.wait_for(first.lost.wait(), 5)
        with pytest.raises(OwnershipLostError) as lost:
            first.append_nowait(b"zombie")
        assert lost.value.outcome is Outcome.REJECTED
        assert await second.append(b"2")
        await asyncio.gather(first.close(), return_exceptions=True)
    assert await values_of(cluster, stream) == [b"1", b"2"]
    await check_stream(cluster, stream)


@in_virtual_time
async def test_the_ledgers_of_a_stream_carry_its_name_and_its_replication() -> None:
    """SEG-54 SEG-55"""
    cluster = Cluster()
    config = StreamConfig(ensemble=4, write_quorum=3, ack_quorum=2, digest="crc32", roll=AT_ONCE.roll)
    stream = await stream_on(cluster, config=config)
    async with stream.writer() as writer:
        await writer.append(b"v")
        await writer.roll()
    for options in cluster.created:
        assert (options["ensemble"], options["write_quorum"], options["ack_quorum"]) == (4, 3, 2)
        assert options["digest"] == "crc32"
        assert options["custom_metadata"] == {
            "application": b"bookkeeper-py",
            "component": b"segments",
            "stream": stream.id.encode(),
            "epoch": b"1",
        }
