"""Where a batch of a stream ends, and how it is cut into partitions (pure; integers only)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from segments.position import Position
from segments.read import KnownPart


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """What one task reads of a stream: so many records, from ``start`` up to, and without, ``stop``."""

    stream: str
    stream_id: str
    """A stream that was made anew under the same name is another one."""
    start: Position
    stop: Position
    first_seq_no: int
    records: int
    known: KnownPart | None = None
    """What a task must know to read it; None: it asks the metadata store."""


def end_by_rows(first: int, end: int, rows: int | None) -> int:
    """The number behind the last record of a batch of at most so many rows."""
    return end if rows is None else min(end, first + rows)


def ranges(
    stream: str, stream_id: str, borders: Sequence[tuple[Position, int]], known: KnownPart | None = None
) -> list[PartitionRange]:
    """The partitions between neighbouring borders (a place, and the number of the record there). Those without a
    record are left out; together they are all records from the first border to the last."""
    found = []
    for (start, first), (stop, end) in pairwise(borders):
        if end < first or stop < start:
            raise ValueError(f"borders of stream {stream} do not rise: {start} ({first}), {stop} ({end})")
        if end > first:
            part = None if known is None else known.part(start, stop)
            found.append(PartitionRange(stream, stream_id, start, stop, first, end - first, part))
    return found


def wanted_partitions(least: int, size: int, partition_bytes: int) -> int:
    """How many partitions a range of so many bytes is cut into."""
    return max(least, -(-size // partition_bytes))
