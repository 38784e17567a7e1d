"""Shell: reads one partition of a stream in a task, and counts what it yields."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from segments import Gap, Position, StreamNotFoundError, sync
from segments.read import OnGap
from spark_wal.data_source import connections
from spark_wal.data_source.columns import SourceColumns, arrow_schema
from spark_wal.data_source.connections import Patience
from spark_wal.data_source.values import ValueColumns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from spark_wal.data_source.options import ReadSettings
    from spark_wal.data_source.stream_plan import PartitionRange

_log = logging.getLogger(__name__)

_GAPS: Final[dict[bool, OnGap]] = {False: "raise", True: "yield"}
_BATCH_RECORDS: Final = 65_536


class PartitionCountError(RuntimeError):
    """A task has read another number of records than its partition has."""


def columns_for(settings: ReadSettings, schema: StructType) -> SourceColumns | ValueColumns:
    """How records become the columns of a schema. Raises DataSourceOptionError."""
    wanted = arrow_schema(schema)
    if settings.value_format == "raw":
        return SourceColumns(wanted)
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
    fresh, patience = attempt > 0, Patience(settings.retry_s)
    at, left, gaps = part.start, part.records, 0
    while left > 0:
        try:
            namespace = connections.namespace(settings.metadata, fresh=fresh)
            fresh = False
            with _opened(namespace, part).read(at, stop=part.stop, on_gap=_GAPS[settings.count_gaps]) as reader:
                for batch in reader.batches(_BATCH_RECORDS):
                    if batch.gap is not None:
                        gaps += 1
                        lost = min(left, batch.gap.records or 0)
                        _tell_gap(part, batch.gap, lost)
                        left -= lost
                        at = max(at, batch.gap.last.next)
                    for each in batch.arrow():
                        if each.num_rows:
                            yield columns.take(each, part.stream)
                            left -= each.num_rows
                            at = _behind(each)
                    patience.succeeded()
            break
        except connections.FAILURES as error:
            patience.failed(error)
    # with a gap of an unknown size nobody can tell how many there should be; more than there are is wrong in any case
    if left < 0 or (left > 0 and not gaps):
        raise PartitionCountError(
            f"{part.records - left} records of stream {part.stream} were read from {part.start} up to {part.stop}, and "
            f"there are {part.records}: nothing of this task counts, and Spark runs it again"
        )


def _opened(namespace: sync.Namespace, part: PartitionRange) -> sync.Stream:
    """The stream of a partition. Raises: StreamNotFoundError: it is gone, or another one has its name now."""
    stream = namespace.open(part.stream)
    if stream.id != part.stream_id:
        raise StreamNotFoundError(
            f"stream {part.stream} has id {stream.id} now, and this batch is of the one with id {part.stream_id}: "
            "it was deleted or renamed while the batch ran, and another one has its name",
            stream=part.stream,
        )
    return stream


def _behind(batch: Any) -> Position:
    """The place directly behind the last record of a batch."""
    last = batch.num_rows - 1
    return Position(*(batch.column(name)[last].as_py() for name in ("segment", "entry", "slot"))).next


def _tell_gap(part: PartitionRange, gap: Gap, lost: int) -> None:
    count = "an unknown number of" if gap.records is None else str(lost)
    _log.warning(
        "stream %s: %s records from %s up to %s are missing (%s), and are passed over as onGap says",
        part.stream, count, gap.first, gap.last, gap.kind.value,
    )  # fmt: skip
