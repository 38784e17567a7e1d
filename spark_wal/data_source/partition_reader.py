"""Shell: reads one partition of a stream in a task, and counts what it yields."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from bookkeeper.amounts import counted
from segments.errors import PositionTruncatedError, StreamNotFoundError
from segments.position import Position
from segments.read import OnGap
from spark_wal.data_source import connections
from spark_wal.data_source.columns import StreamColumns, arrow_schema
from spark_wal.data_source.connections import RetryTimer
from spark_wal.data_source.values import ValueColumns
from spark_wal.data_source.worker_heap import freeze_loaded_objects

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from segments.read.blocking import Reader
    from spark_wal.data_source.options import ReadSettings
    from spark_wal.data_source.stream_plan import PartitionRange

_log = logging.getLogger(__name__)

_GAPS: Final[dict[bool, OnGap]] = {False: "raise", True: "yield"}
_BATCH_RECORDS: Final = 65_536
_ARROW_BYTES: Final = 2 << 20
"""About the bytes of one batch for Spark. Each costs this process and the JVM as much as several hundred rows, so small
entries are joined."""


class PartitionCountError(RuntimeError):
    """A task has read other records than its partition has."""


def columns_for(settings: ReadSettings, schema: StructType) -> StreamColumns | ValueColumns:
    """How records become the columns of a schema. Raises DataSourceOptionError."""
    wanted = arrow_schema(schema)
    if settings.value_format == "raw":
        return StreamColumns(wanted)
    return ValueColumns(wanted, settings.value_format, permissive=settings.permissive)


def read_partition(settings: ReadSettings, schema: StructType, part: PartitionRange, attempt: int) -> Iterator[Any]:
    """The records of a partition, as ``pyarrow.RecordBatch``es. Where a connection breaks in between it goes on behind
    the last record that was yielded.

    Args:
        attempt: of the task; from the second on the connection is made anew.

    Raises:
        PartitionCountError, StreamGapError, PositionTruncatedError, ValueFormatError, StreamError, BookKeeperError.
    """
    columns = columns_for(settings, schema)
    fresh, patience = attempt > 0, RetryTimer(settings.retry_s)
    at, count = part.start, _Count(part, lenient=settings.count_gaps)
    while count.left:
        try:
            reader = _reader(settings, part, at, fresh=fresh)
            fresh = False
            with reader:
                for batch in reader.batches(_BATCH_RECORDS):
                    if batch.gap is not None:
                        count.why = f"{batch.gap.kind.value}, from {batch.gap.first} up to {batch.gap.last}"
                        at = max(at, batch.gap.last.next)
                    for some in batch.in_parts(_ARROW_BYTES):
                        for entry, a, b in some.slices:
                            count.count(entry.first_seq_no + a, b - a)
                        yield columns.convert(some.joined_arrow(columns.needs), part.stream)
                        at = entry.position(b)
                    patience.succeeded()
            break
        except PositionTruncatedError as error:
            if not settings.count_gaps:
                raise
            count.why = str(error)  # even the partition's end is gone
            break
        except connections.FAILURES as error:
            patience.failed(error)
    count.end()
    freeze_loaded_objects()


class _Count:
    """Compares the numbers of what is read with those that the partition has: they rise by one, whatever is told."""

    def __init__(self, part: PartitionRange, *, lenient: bool) -> None:
        self._part, self._lenient = part, lenient
        self._following = part.first_seq_no
        self.why = "nobody told why"
        """Of the gap that was told last."""

    @property
    def left(self) -> int:
        """How many records are not read yet."""
        return self._part.first_seq_no + self._part.records - self._following

    def count(self, first: int, records: int) -> None:
        """So many records come, from this number on. Raises PartitionCountError."""
        if first > self._following:
            self._missing(first)
        if first < self._following or records > self.left:
            raise self._wrong(f"record {first} and {records - 1} behind it came instead of {self._following}")
        self._following = first + records

    def end(self) -> None:
        """Nothing follows. Raises PartitionCountError."""
        if self.left:
            self._missing(self._following + self.left)

    def _missing(self, first: int) -> None:
        part = self._part
        if not self._lenient or first > part.first_seq_no + part.records:
            raise self._wrong(f"records {self._following} to {first - 1} did not come")
        _log.warning(
            "stream %s: %s missing, number %d to %d (%s), and passed over as onGap says",
            part.stream, counted(first - self._following, "record", "is", "are"), self._following, first - 1, self.why,
        )  # fmt: skip
        self._following = first

    def _wrong(self, said: str) -> PartitionCountError:
        part = self._part
        return PartitionCountError(
            f"stream {part.stream} from {part.start} up to {part.stop} has the records {part.first_seq_no} to "
            f"{part.first_seq_no + part.records - 1}, and {said}: nothing of this task counts, and Spark runs it "
            "again. If they were truncated or removed, it fails again: with option onGap count they are passed over"
        )


def _reader(settings: ReadSettings, part: PartitionRange, at: Position, *, fresh: bool) -> Reader:
    """A reader of what is left of a partition. Raises: StreamNotFoundError: the stream is gone, or another one has its
    name now."""
    on_gap = _GAPS[settings.count_gaps]
    if part.known is not None:
        streams = connections.known_streams(settings.metadata, part.known.cluster, fresh=fresh)
        return streams.read(part.known, at, stop=part.stop, on_gap=on_gap)
    stream = connections.namespace(settings.metadata, fresh=fresh).open(part.stream)
    if stream.id != part.stream_id:
        raise StreamNotFoundError(
            f"stream {part.stream} has id {stream.id} now, and this batch is of the one with id {part.stream_id}: "
            "it was deleted or renamed while the batch ran, and another one has its name",
            stream=part.stream,
        )
    return stream.read(at, stop=part.stop, on_gap=on_gap)
