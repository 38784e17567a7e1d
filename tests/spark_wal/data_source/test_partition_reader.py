"""A partition is read whole, once, or its task fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from segments import Position, PositionTruncatedError, StreamNotFoundError, StreamUnavailableError, sync
from spark_wal.data_source import connections, partition_reader
from spark_wal.data_source.partition_reader import PartitionCountError, columns_for, read_partition
from spark_wal.data_source.stream_plan import PartitionRange
from spark_wal.data_source.values import ValueColumns
from tests.spark_wal.data_source.clusters import NUMBERS, settings, written


def part_of(
    stream: sync.Stream, start: Position, stop: Position, first: int, records: int, *, known: bool = True
) -> PartitionRange:
    part = stream.view().known(start, stop) if known else None
    return PartitionRange(stream.name, stream.id, start, stop, first, records, part)


def numbers(stream: sync.Stream, uri: str, part: PartitionRange, attempt: int = 0, **more: Any) -> list[int]:
    found = read_partition(settings(stream, uri, **more), NUMBERS, part, attempt)
    return [number for batch in found for number in batch.column("seq_no").to_pylist()]


def test_a_range_from_within_an_entry_into_another_segment(namespace: sync.Namespace, cluster_uri: str) -> None:
    stream = written(namespace, "ranges", [4, 4], [4])
    part = part_of(stream, Position(1, 0, 2), Position(2, 0, 1), 2, 7)
    assert numbers(stream, cluster_uri, part) == list(range(2, 9))


def test_small_entries_come_to_spark_together(
    namespace: sync.Namespace, cluster_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = written(namespace, "joined", [4, 4, 2])
    part = part_of(stream, Position(1, 0, 1), Position(1, 2, 1), 1, 8)

    def sizes() -> list[int]:
        return [batch.num_rows for batch in read_partition(settings(stream, cluster_uri), NUMBERS, part, 0)]

    assert sizes() == [8] and numbers(stream, cluster_uri, part) == list(range(1, 9))
    monkeypatch.setattr(partition_reader, "_ARROW_BYTES", 1)
    assert sizes() == [3, 4, 1] and numbers(stream, cluster_uri, part) == list(range(1, 9))


def test_another_number_of_records_than_planned_fails_the_task(namespace: sync.Namespace, cluster_uri: str) -> None:
    stream = written(namespace, "counts", [4])
    wrong = [(0, 3, "record 0 and 3 behind it came"), (0, 5, "records 4 to 4 did not come"), (1, 3, "record 0 and 3")]
    for first, records, said in wrong:
        part = part_of(stream, Position(1, 0, 0), Position(1, 1, 0), first, records)
        with pytest.raises(PartitionCountError, match=said):
            numbers(stream, cluster_uri, part, count_gaps=records == 3)


def test_the_next_attempt_has_a_connection_of_its_own(namespace: sync.Namespace, cluster_uri: str) -> None:
    stream = written(namespace, "attempts", [3])
    part = part_of(stream, Position(1, 0, 0), Position(1, 1, 0), 0, 3)
    assert part.known is not None
    first = connections.known_streams(cluster_uri, part.known.cluster)
    assert numbers(stream, cluster_uri, part) == [0, 1, 2]
    assert connections.known_streams(cluster_uri, part.known.cluster) is first
    assert numbers(stream, cluster_uri, part, attempt=1) == [0, 1, 2]
    assert connections.known_streams(cluster_uri, part.known.cluster) is not first


@pytest.mark.parametrize("entries", [[1] * 10, [10]], ids=["ten entries", "one entry"])
@pytest.mark.parametrize("broken_after", range(10))
def test_a_connection_that_breaks_after_any_record_costs_and_doubles_none(
    namespace: sync.Namespace, cluster_uri: str, monkeypatch: pytest.MonkeyPatch, entries: list[int], broken_after: int
) -> None:
    """pulsar-spark#156, #181: one record too early or too late after a reconnect."""
    stream = written(namespace, f"breaks-{len(entries)}-{broken_after}", entries)
    whole, left = sync.Reader.batches, [1]

    def breaking(reader: sync.Reader, *_: object, **__: object) -> Iterator[Any]:
        for given, batch in enumerate(whole(reader, max_records=1)):
            if left and given == broken_after:
                left.pop()
                raise StreamUnavailableError("the connection was cut")
            yield batch

    monkeypatch.setattr(sync.Reader, "batches", breaking)
    end = Position(1, len(entries), 0)
    part = part_of(stream, Position(1, 0, 0), end, 0, 10)
    assert numbers(stream, cluster_uri, part, retry_s=60.0) == list(range(10))
    assert not left, "it broke"


def test_truncated_records_are_an_error_or_a_counted_gap(
    namespace: sync.Namespace, cluster_uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = written(namespace, "gap", [4, 4], [4])
    whole = part_of(stream, Position(1, 0, 0), Position(2, 1, 0), 0, 12, known=False)
    gone = part_of(stream, Position(1, 0, 0), Position(1, 1, 0), 0, 4, known=False)
    stream.truncate(Position(1, 1, 1))
    with pytest.raises(PartitionCountError, match=r"records 0 to 4 did not come.*onGap count"):
        numbers(stream, cluster_uri, whole)  # the beginning is no place that a reader calls truncated
    with pytest.raises(PositionTruncatedError):
        numbers(stream, cluster_uri, part_of(stream, Position(1, 0, 1), Position(2, 1, 0), 1, 11, known=False))
    assert numbers(stream, cluster_uri, whole, count_gaps=True) == list(range(5, 12))
    assert "5 records are missing, number 0 to 4" in caplog.text
    assert numbers(stream, cluster_uri, gone, count_gaps=True) == []


def test_a_stream_that_was_made_anew_under_the_name_is_not_read(namespace: sync.Namespace, cluster_uri: str) -> None:
    stream = written(namespace, "anew", [2])
    part = part_of(stream, Position(1, 0, 0), Position(1, 1, 0), 0, 2, known=False)
    namespace.rename("anew", "former")
    written(namespace, "anew", [2])
    with pytest.raises(StreamNotFoundError, match="another one has its name"):
        read = read_partition(settings(stream, cluster_uri), NUMBERS, part, 0)
        list(read)


def test_columns_are_the_records_or_the_values(namespace: sync.Namespace, cluster_uri: str) -> None:
    stream = written(namespace, "columns-for", [1])
    assert isinstance(columns_for(settings(stream, cluster_uri, value_format="json"), NUMBERS), ValueColumns)
    assert columns_for(settings(stream, cluster_uri), NUMBERS).schema.names == ["seq_no", "value"]


def test_a_cluster_that_stays_away_ends_the_task(
    namespace: sync.Namespace, cluster_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = written(namespace, "away", [2])
    part = part_of(stream, Position(1, 0, 0), Position(1, 1, 0), 0, 2)

    def away(*_: object, **__: object) -> Iterator[Any]:
        raise StreamUnavailableError("no bookie answers")

    monkeypatch.setattr(sync.Reader, "batches", away)
    with pytest.raises(StreamUnavailableError, match="no bookie answers"):
        numbers(stream, cluster_uri, part, retry_s=0.0)
