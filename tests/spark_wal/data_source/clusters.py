"""A cluster in this process with streams, and Spark's types without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import types as t
from pyspark.sql.datasource import InputPartition

from segments import Position, Record, RollPolicy, StreamConfig, sync
from spark_wal.data_source.options import ReadSettings
from spark_wal.data_source.stream_source import QuerySource

ONE_BOOKIE = StreamConfig(ensemble=1, write_quorum=1, ack_quorum=1, roll=RollPolicy(min_age_s=0))
NUMBERS = t.StructType([t.StructField("seq_no", t.LongType()), t.StructField("value", t.BinaryType())])


def written(namespace: sync.Namespace, name: str, *segments: Iterable[int], rest: Iterable[int] = ()) -> sync.Stream:
    """A new stream: each number of a segment is an entry of so many records; ``rest`` is in the open segment. A
    record's value is its number."""
    stream = namespace.create(name, config=ONE_BOOKIE)
    number = 0
    with stream.writer() as writer:
        for each in (*segments, None):
            for size in rest if each is None else each:
                writer.append_batch([Record(b"%d" % n) for n in range(number, number + size)])
                number += size
            if each is not None:
                writer.roll()
    return stream


def settings(stream: sync.Stream, uri: str, **more: Any) -> ReadSettings:
    """What a reader of this stream is asked for; it does not wait for a cluster that is away."""
    return ReadSettings(**{"metadata": uri, "stream": stream.name, "retry_s": 0.0, **more})


def read_all(source: Any, partitions: Iterable[Any]) -> list[int]:
    """The numbers of all records of these partitions, in order; each value is the number."""
    found: list[int] = []
    for partition in partitions:
        for batch in source.read(partition):
            rows = batch.to_pylist()
            assert all(row["value"] == b"%d" % row["seq_no"] for row in rows)
            found += [row["seq_no"] for row in rows]
    return found


def rows(reader: Any) -> list[tuple[Any, Any]]:
    """All rows of a table. As Spark does, it has a partition without a range read where there is none."""
    parts = reader.partitions() or [InputPartition(None)]
    return [tuple(row.values()) for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def one_batch(source: QuerySource, start: Mapping[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """The end of the batch that begins at ``start``, and its records' numbers."""
    end = source.latestOffset(start, source.getDefaultReadLimit())
    return end, read_all(source, source.partitions(start, end))


def segment_of(offset: Mapping[str, Any]) -> Position:
    """The place that an offset names."""
    return Position(*map(int, offset["next"].split(":")))
