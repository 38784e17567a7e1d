"""Reading what a real writer writes: places, counts, the first and the last record, splits, Arrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from segments.position import EARLIEST, LATEST
from segments.record import Record, StoredRecord
from segments.seek import AtSeqNo, AtTxId
from segments.stream import Stream
from tests.segments.clusters import AT_ONCE, a_namespace


async def written(stream: Stream, segments: int = 3, each: int = 40) -> None:
    """Segments of ``each`` records in batches of four; record n has transaction id 10 n, and the last segment is
    completed, too."""
    n = 0
    async with stream.writer() as writer:
        for segment in range(segments):
            for _ in range(each // 4):
                records = [Record(b"%d" % k, txid=10 * k, key=b"k%d" % (k % 3)) for k in range(n, n + 4)]
                await writer.append_batch(records)
                n += 4
            if segment < segments - 1:
                await writer.roll()


async def test_what_was_written_is_read_counted_and_cut(tmp_path: Path) -> None:
    """SEG-12, SEG-72: a new reader of a new client counts on."""
    async with a_namespace(tmp_path) as namespace:
        stream = await namespace.create("s", config=AT_ONCE)
        assert await stream.first() is None and await stream.last() is None and await stream.count() == 0
        await written(stream)
        again = await namespace.open("s")
        async with again.read() as reader:
            records = [record async for record in reader if isinstance(record, StoredRecord)]
        assert [record.seq_no for record in records] == list(range(120))
        assert [int(record.value) for record in records] == list(range(120))
        assert {record.key for record in records} == {b"k0", b"k1", b"k2"}
        first, last = await again.first(), await again.last()
        assert first == records[0] and last == records[-1]
        assert await again.count() == 120
        assert await again.count(AtSeqNo(7), AtTxId(1000)) == 93
        assert await again.find(AtTxId(401)) == records[41].position
        assert await again.find(LATEST) == await again.tail_position() > records[-1].position
        ranges = await again.splits(target=5)
        assert len(ranges) == 5 and ranges[0].start <= records[0].position
        found: list[int] = []
        for part in ranges:
            async with again.read(part.start, stop=part.stop) as reader:
                found += [record.seq_no async for record in reader if isinstance(record, StoredRecord)]
        assert found == list(range(120))


async def test_arrow_batches_have_the_same_records(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    async with a_namespace(tmp_path) as namespace:
        stream = await namespace.create("s", config=AT_ONCE)
        await written(stream)
        async with stream.read(EARLIEST) as reader:
            rows = [row async for batch in reader.arrow_batches() for row in batch.to_pylist()]
        assert [row["seq_no"] for row in rows] == list(range(120))
        assert [row["value"] for row in rows] == [b"%d" % n for n in range(120)]
        assert [row["txid"] for row in rows] == [10 * n for n in range(120)]


async def test_a_reader_tails_a_real_writer_across_rolls_and_take_overs(tmp_path: Path) -> None:
    """SEG-61, SEG-76: nothing is missing, nothing comes twice, in order."""
    async with a_namespace(tmp_path) as namespace:
        stream = await namespace.create("s", config=AT_ONCE)
        async with stream.read(follow=True) as reader:
            n = 0
            for _ in range(3):
                async with stream.writer() as writer:
                    for _ in range(2):
                        for _ in range(5):
                            await writer.append(b"%d" % n)
                            n += 1
                            record = await reader.next(timeout=10)
                            assert isinstance(record, StoredRecord) and record.value == b"%d" % (n - 1)
                        await writer.roll()
