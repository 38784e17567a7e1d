"""A stream as a query's source, called as Spark calls it: each record in one batch, also over restarts."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from segments import EARLIEST, AtCursor, AtSeqNo, PositionTruncatedError, StreamHeldError, sync
from spark_wal.data_source.offsets import OffsetError
from spark_wal.data_source.stream_source import QuerySource
from tests.spark_wal.data_source.clusters import NUMBERS, ONE_BOOKIE, one_batch, read_all, segment_of, settings, written

Begin = Callable[..., QuerySource]


@pytest.fixture
def begin(cluster_uri: str) -> Iterator[Begin]:
    """A query's source; each is as after a start of the driver."""
    sources: list[QuerySource] = []

    def made(stream: sync.Stream, **more: Any) -> QuerySource:
        sources.append(QuerySource(settings(stream, cluster_uri, **more), NUMBERS))
        return sources[-1]

    yield made
    for source in sources:
        source.stop()


def all_batches(source: QuerySource, start: dict[str, Any]) -> list[list[int]]:
    """The batches from an offset to the stream's end."""
    found: list[list[int]] = []
    while True:
        end, batch = one_batch(source, start)
        if end == start:
            return found
        found.append(batch)
        source.commit(end)
        start = end


def test_batches_of_rows_end_inside_of_entries_and_have_each_record_once(
    namespace: sync.Namespace, begin: Begin
) -> None:
    stream = written(namespace, "source/rows", [5, 1], [4], rest=[7])
    source = begin(stream, max_rows=3)
    assert source.getDefaultReadLimit() == ReadMaxRows(3)
    batches = all_batches(source, source.initialOffset())
    assert batches == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13, 14], [15, 16]]


def test_batches_of_bytes_end_at_entries_and_a_large_record_goes_alone(namespace: sync.Namespace, begin: Begin) -> None:
    stream = namespace.create("source/bytes", config=ONE_BOOKIE)
    with stream.writer() as writer:
        for size in (1000, 1000, 90_000, 1000):
            writer.append(b"x" * size)
            writer.roll()
    source = begin(stream, max_bytes=4000)
    assert source.getDefaultReadLimit() == ReadMaxBytes(4000)
    start, counts = source.initialOffset(), []
    while (end := source.latestOffset(start, source.getDefaultReadLimit())) != start:
        counts.append(end["nextSeqNo"] - start["nextSeqNo"])
        start = end
    assert sum(counts) == 4 and len(counts) > 1 and 0 not in counts
    assert counts[-2:] != [2, 0], "it ends"


@pytest.mark.parametrize("least", [1, 2, 3, 7])
def test_a_batch_is_cut_into_partitions_that_have_each_record_once(
    namespace: sync.Namespace, begin: Begin, least: int
) -> None:
    stream = written(namespace, f"source/parts-{least}", [1] * 9, [30], rest=[1, 2, 3])
    source = begin(stream, min_partitions=least)
    start = source.initialOffset()
    end = source.latestOffset(start, ReadAllAvailable())
    parts = source.partitions(start, end)
    assert isinstance(parts, list) and 1 <= len(parts) <= least
    assert read_all(source, parts) == list(range(45))
    assert sum(part.value.records for part in parts) == 45


@pytest.mark.parametrize(("place", "first"), [("seq:3", 3), ("1:0:2", 2), ("earliest", 0), ("latest", 8)])
def test_the_record_that_a_start_names_is_in_the_first_batch(
    namespace: sync.Namespace, begin: Begin, place: str, first: int
) -> None:
    """pulsar-spark#156: an inclusive start was taken for an exclusive one."""
    stream = written(namespace, f"source/start-{first}", [5], rest=[3])
    source = begin(stream, start=place)
    start = source.initialOffset()
    assert start["nextSeqNo"] == first
    end, batch = one_batch(source, start)
    assert batch == list(range(first, 8))
    source.stop()
    again = begin(stream, start="earliest")  # killed between offsets/0 and commits/0; options do not count any more
    assert read_all(again, again.partitions(start, end)) == batch


@pytest.mark.parametrize("place", ["latest", "earliest", "seq:1"])
def test_at_a_restart_the_checkpoint_wins_over_every_starting_option(
    namespace: sync.Namespace, begin: Begin, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    """paimon#8205: the start was computed anew; records between were skipped, then everything was read again."""
    stream = written(namespace, f"source/restart-{place.replace(':', '-')}", rest=[3])
    source = begin(stream, start="latest", max_rows=2)
    start = source.initialOffset()
    with stream.writer() as writer:
        writer.append_batch([b"%d" % number for number in range(3, 6)])
    end, _ = one_batch(source, start)
    source.commit(end)
    source.stop()
    with stream.writer() as writer:
        writer.append_batch([b"%d" % number for number in range(6, 9)])
    with caplog.at_level("INFO"):
        assert all_batches(begin(stream, start=place, max_rows=100), end) == [[5, 6, 7, 8]]
    assert ("startingPosition" in caplog.text) == (place != "earliest"), "the default was not asked for"


def test_earliest_of_a_truncated_stream_is_its_first_record(namespace: sync.Namespace, begin: Begin) -> None:
    stream = written(namespace, "source/truncated-start", [5], rest=[3])
    stream.truncate(AtSeqNo(2))
    source = begin(stream)
    assert all_batches(source, source.initialOffset()) == [list(range(2, 8))]


def test_the_reader_that_tasks_get_holds_nothing(namespace: sync.Namespace, begin: Begin) -> None:
    stream = written(namespace, "source/pickled", rest=[4])
    source = begin(stream)
    start = source.initialOffset()
    end = source.latestOffset(start, ReadAllAvailable())
    parts = source.partitions(start, end)
    data = pickle.dumps((source, parts))
    in_task, parts_there = pickle.loads(data)
    assert len(data) < 4000 and read_all(in_task, parts_there) == [0, 1, 2, 3]


def test_spark_4_0_tells_neither_start_nor_limit(namespace: sync.Namespace, begin: Begin) -> None:
    source = begin(written(namespace, "source/old", rest=[4]), max_rows=1)
    assert source.latestOffset()["nextSeqNo"] == 4


def test_spark_4_0_has_no_limits_and_the_source_is_imported_there() -> None:
    code = (
        "import sys, pyspark.sql.datasource, pyspark.sql.streaming\n"
        "del pyspark.sql.streaming.datasource\n"
        "sys.modules['pyspark.sql.streaming.datasource'] = None\n"
        "from spark_wal.data_source.stream_source import QuerySource\n"
        "print([base.__name__ for base in QuerySource.__mro__])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "SupportsTriggerAvailableNow" not in done.stdout and "DataSourceStreamReader" in done.stdout, done.stderr


def test_available_now_is_pinned_while_others_append_and_truncate(namespace: sync.Namespace, begin: Begin) -> None:
    stream = written(namespace, "source/now", [4], rest=[2])
    source = begin(stream, max_rows=4)
    start = source.initialOffset()
    source.prepareForTriggerAvailableNow()
    with stream.writer() as writer:
        writer.append_batch([b"6", b"7"])
    first_end, first = one_batch(source, start)
    source.commit(first_end)
    with pytest.raises(StreamHeldError):
        stream.truncate(AtSeqNo(6))
    assert first == [0, 1, 2, 3] and all_batches(source, first_end) == [[4, 5]]
    report = source.reportLatestOffset()
    assert report is not None and report["nextSeqNo"] == 8


def test_what_is_not_committed_is_held_and_retention_removes_the_rest(namespace: sync.Namespace, begin: Begin) -> None:
    """SPARK-48330: nothing is called between two triggers, and retention runs."""
    stream = written(namespace, "source/held", [4], [4], rest=[4])
    stream.configure({"retention.max_records": 0})
    source = begin(stream, max_rows=4, hold_name="query")
    start = source.initialOffset()
    end, _ = one_batch(source, start)
    stream.apply_retention()
    assert [hold.name for hold in stream.holds()] == ["query"]
    assert read_all(source, source.partitions(start, end)) == [0, 1, 2, 3], "the batch can be repeated"


def test_a_caught_up_query_goes_on_though_the_segment_it_stands_in_is_gone(
    namespace: sync.Namespace, begin: Begin
) -> None:
    """hudi#7778, where nothing is lost: the place is directly behind the last record that went."""
    stream = written(namespace, "source/caught-up", [4])
    source = begin(stream)
    start = source.initialOffset()
    end, _ = one_batch(source, start)
    source.stop()
    for hold in stream.holds():
        stream.release_hold(hold.name)
    with stream.writer() as writer:
        writer.append_batch([b"4", b"5"])
        writer.roll()
    stream.truncate(AtSeqNo(4))
    stream.apply_retention()
    again = begin(stream)
    assert all_batches(again, end) == [[4, 5]]


def test_truncated_records_end_the_query_or_are_counted(
    namespace: sync.Namespace, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    """hudi#7778: a checkpoint whose place was removed ended in an error without a word."""
    stream = written(namespace, "source/gaps", [4, 4], rest=[4])
    source = begin(stream, max_rows=2)
    start, batch = one_batch(source, source.initialOffset())
    source.stop()
    for hold in stream.holds():
        stream.release_hold(hold.name)
    end = source.latestOffset(start, source.getDefaultReadLimit())
    stream.truncate(AtSeqNo(5))
    said = "stream source/gaps: records 2 to 4, which this query has not read, were truncated or removed; .*onGap count"
    with pytest.raises(PositionTruncatedError, match=said):
        source.partitions(start, end)  # somebody has removed its hold
    with pytest.raises(PositionTruncatedError, match=said):
        one_batch(begin(stream), start)
    lenient = begin(stream, max_rows=2, count_gaps=True)
    assert batch == [0, 1]
    assert [number for found in all_batches(lenient, start) for number in found] == [5, 6, 7, 8, 9, 10, 11]
    assert "3 records are missing, number 2 to 4" in caplog.text


def test_commits_move_a_cursor_and_never_back(namespace: sync.Namespace, begin: Begin) -> None:
    stream = written(namespace, "source/cursor", [4], rest=[2])
    source = begin(stream, max_rows=3, cursor="spark")
    start = source.initialOffset()
    end, _ = one_batch(source, start)
    source.commit(end)
    assert stream.find(AtCursor("spark")) == segment_of(end)
    source.commit(start)
    assert stream.find(AtCursor("spark")) == segment_of(end)
    source.stop()
    other = begin(stream, start="cursor:spark")
    assert all_batches(other, other.initialOffset()) == [[3, 4, 5]]


def test_a_stream_that_was_made_anew_is_not_read_on(namespace: sync.Namespace, begin: Begin) -> None:
    source = begin(written(namespace, "source/anew", rest=[2]))
    start = source.initialOffset()
    namespace.rename("source/anew", "source/was")
    again = begin(written(namespace, "source/anew", rest=[2]))
    with pytest.raises(OffsetError, match=r"belongs to another stream: that one has id .*and stream source/anew has"):
        again.latestOffset(start, ReadAllAvailable())


def test_an_empty_stream_has_an_offset_and_no_batch(namespace: sync.Namespace, begin: Begin) -> None:
    stream = namespace.create("source/empty", config=ONE_BOOKIE)
    source = begin(stream)
    start = source.initialOffset()
    assert source.latestOffset(start, ReadAllAvailable()) == start and source.partitions(start, start) == []
    with stream.writer() as writer:
        writer.append_batch([b"0", b"1"])
    assert all_batches(source, start) == [[0, 1]]
    assert stream.seq_no(EARLIEST) == 0 and stream.end().seq_no == 2
