"""Shell: reads one partition of a stream in a task, and counts what it yields."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from bookkeeper.errors import BookKeeperError
from segments import Gap, Position, StreamMetadataError, StreamUnavailableError
from spark_wal.data_source import connections
from spark_wal.data_source.columns import SourceColumns, arrow_schema
from spark_wal.data_source.values import ValueColumns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from spark_wal.data_source.options import ReadSettings
    from spark_wal.data_source.stream_plan import PartitionRange

_log = logging.getLogger(__name__)

_PAUSE_S: Final = 0.5
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
    namespace = connections.namespace(settings.metadata, fresh=attempt > 0)
    at, left, missing = part.start, part.records, 0
    deadline = None
    while left > 0:
        try:
            stream = namespace.open(part.stream)
            with stream.read(at, stop=part.stop, on_gap="yield" if settings.count_gaps else "raise") as reader:
                for batch in reader.batches(_BATCH_RECORDS):
                    if batch.gap is not None:
                        lost = batch.gap.records or 0
                        _tell_gap(part, batch.gap)
                        missing += lost
                        left -= lost
                    for each in batch.arrow():
                        if each.num_rows:
                            yield columns.take(each, part.stream)
                            left -= each.num_rows
                            at, deadline = _behind(each), None
            break
        except (StreamUnavailableError, StreamMetadataError, BookKeeperError) as error:
            if isinstance(error, BookKeeperError) and not error.retryable:
                raise
            deadline = deadline or time.monotonic() + settings.retry_s
            if time.monotonic() > deadline:
                raise
            _log.warning("stream %s is read on from %s after a pause: %s", part.stream, at, error)
            time.sleep(_PAUSE_S)
    if left and not (settings.count_gaps and missing):
        raise PartitionCountError(
            f"{part.records - left} records of stream {part.stream} were read from {part.start} up to {part.stop}, and "
            f"there are {part.records}: nothing of this task counts, and Spark runs it again"
        )


def _behind(batch: Any) -> Position:
    """The place directly behind the last record of a batch."""
    last = batch.num_rows - 1
    return Position(*(batch.column(name)[last].as_py() for name in ("segment", "entry", "slot"))).next


def _tell_gap(part: PartitionRange, gap: Gap) -> None:
    count = "an unknown number of" if gap.records is None else str(gap.records)
    _log.warning(
        "stream %s: %s records from %s up to %s are missing (%s), and are passed over as onGap says",
        part.stream, count, gap.first, gap.last, gap.kind.value,
    )  # fmt: skip
