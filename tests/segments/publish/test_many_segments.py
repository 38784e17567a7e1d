"""A stream of a hundred thousand published segments: its record stays small, and everything goes on as before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from segments import BatchKey, StoredRecord
from segments.chain import SegmentContents
from segments.publish import StagedLedger, StagedRows, StreamPublisher
from segments.retention.stagings import Stagings
from segments.seek import AtSeqNo
from segments.stream import Stream
from tests.segments.publish.cluster import Programs, story
from tests.segments.publish.test_publisher import staged

BATCHES, LEDGERS = 101, 999
pytestmark = pytest.mark.timeout(1800)
CONTENTS = SegmentContents(7, 700, 1, (0, 6), None, None, 1_700_000_000_000, 1_700_000_000_000, None, None, 1)


def made_up(stream: Stream, batch: int) -> list[StagedRows]:
    """The messages of tasks whose ledgers do not exist."""
    first = 1 << 40 | batch * LEDGERS
    return [StagedRows(f"b{batch}", stream.id, 7, StagedLedger(first + at, CONTENTS)) for at in range(LEDGERS)]


class Sizes:
    """The values that are written to, and read from, a metadata store."""

    def __init__(self, store: Any, kind: str) -> None:
        self.all: list[tuple[str, int]] = []
        call = getattr(store, kind)

        async def seen(path: str, *rest: Any) -> Any:
            found = await call(path, *rest)
            self.all.append((path, len(found.value if kind == "get" else rest[0])))
            return found

        setattr(store, kind, seen)


@pytest.mark.rule("S14", "C4")
@story
async def test_a_hundred_thousand_published_segments_leave_a_stream_quick(programs: Programs) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with programs.stream() as stream:
            async with stream.producer("p") as producer:
                await producer.append(b"p0", seq=0)
            publisher = await stream.publisher()
            seq_nos = {}

            async def seen_before(self: StreamPublisher, written: Sequence[tuple[StagedLedger, str]]) -> None:
                """It is as it should be."""

            for batch in range(BATCHES):
                if batch % 25 == 0:
                    rows = await staged(stream, f"real{batch}", [b"real %d" % batch])
                    done = await publisher.publish(BatchKey("a", "q", 2 * batch), rows)
                    seq_nos[done.first_seq_no] = b"real %d" % batch
                with patch.context() as without:
                    without.setattr(StreamPublisher, "_check_written", seen_before)
                    without.setattr(Stagings, "end", lambda self, staging, ledgers: [])
                    await publisher.publish(BatchKey("a", "q", 2 * batch + 1), made_up(stream, batch))
            await publisher.close()
        async with programs.stream() as stream:
            read = Sizes(stream.client.metadata_store.store, "get")
            recent, _ = await stream.node.recent.read()
            assert recent.count > 100_000 and len(recent.pages) > 95
            size = max(size for _, size in read.all)
            assert size < 400_000, "of the 1 MiB that a store takes"
            read.all.clear()
            async with stream.producer("p") as producer:
                assert (producer.last_seq, producer.epoch) == (0, 2)
                assert (await producer.append(b"p1", seq=1)).seq_no == recent.records
            assert not [path for path, _ in read.all if "/pages/" in path], "a new owner reads no page"
            read.all.clear()
            for seq_no, value in seq_nos.items():
                async with stream.read(AtSeqNo(seq_no)) as reader:
                    record = await reader.next()
                assert isinstance(record, StoredRecord)
                assert (record.seq_no, record.value) == (seq_no, value)
            pages = [path for path, _ in read.all if "/pages/" in path]
            assert len(pages) == len(set(pages)), "each page is read once"
            first = sorted(seq_nos)[1]
            await stream.truncate(AtSeqNo(first))
            while (await stream._retention().run(all_reasons=False)).deleted:
                pass
            chain = await stream.chain()
            assert 70_000 < chain.count < 80_000 and chain.first_position == await stream.find(AtSeqNo(first))
            async with stream.read() as reader:
                record = await reader.next()
            assert isinstance(record, StoredRecord) and record.seq_no == first
