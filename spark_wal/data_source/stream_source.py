"""Shell: a stream as the source of a streaming query.

Spark keeps one of these in a process of its own for each source of a query, and pickles it into every task. What it
keeps of the cluster is in that process alone.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from segments import EARLIEST, AtSeqNo, Position, PositionTruncatedError, sync
from spark_wal.data_source import connections
from spark_wal.data_source.connections import call_with_retries
from spark_wal.data_source.hold_keeper import HoldKeeper
from spark_wal.data_source.offsets import StreamOffset, read_offset
from spark_wal.data_source.partition_reader import columns_for, read_partition
from spark_wal.data_source.stream_plan import PartitionRange, end_by_rows, ranges, wanted_partitions

try:  # PySpark 4.0 has neither; there is nothing to be told of limits then
    from pyspark.sql.streaming import datasource as limits
except ImportError:
    limits = None

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from spark_wal.data_source.options import ReadSettings

_log = logging.getLogger(__name__)

PARTITION_BYTES: Final = 128 << 20
"""A larger batch is cut into more partitions than ``minPartitions``."""

T = TypeVar("T")

_PINNED: Any = object if limits is None else limits.SupportsTriggerAvailableNow


class StreamPartition(InputPartition):
    """A partition as Spark hands it to a task: a range of records, and nothing that is secret."""

    def __init__(self, part: PartitionRange) -> None:
        super().__init__(part)


class QuerySource(DataSourceStreamReader, _PINNED):
    """Reads one stream, batch after batch.

    Args:
        settings: as ``read_settings`` gives them.
        schema: the columns that the query has.
    """

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        assert settings.stream is not None
        columns_for(settings, schema)
        self._settings, self._schema, self._name = settings, schema, settings.stream
        self._stream: sync.Stream | None = None
        self._hold: HoldKeeper | None = None
        self._cursor: sync.Cursor | None = None
        self._view: sync.StreamView | None = None
        """The stream as it was when this trigger began, or was planned."""
        self._target: StreamOffset | None = None
        """Where a run with ``availableNow`` ends."""
        self._begun = False

    def __getstate__(self) -> dict[str, Any]:
        """What tasks get: no connection, no thread, no lock."""
        unshared = {"_stream": None, "_view": None, "_hold": None, "_cursor": None, "_target": None}
        return {**self.__dict__, **unshared}

    # -- offsets ------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:
        """Where a query without a checkpoint begins."""

        def found() -> StreamOffset:
            stream = self._opened()
            place = stream.find(self._settings.start_seek)
            return StreamOffset(stream.seq_no(place), place, stream.id)

        self._begun = True
        first = self._with_retries(found)
        self._hold_from(first)
        return first.document()

    def latestOffset(self, start: Mapping[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Where the next batch ends. PySpark before 4.2 tells neither start nor limit."""
        self._view = None
        begin = None if start is None else self._read(start)
        if begin is not None:
            self._log_start(begin)
            self._hold_from(begin)
        end = self._target or self._with_retries(self._end)
        if begin is None:
            return end.document()
        if end.next_seq_no <= begin.next_seq_no:
            return begin.document()
        with self._with_explanation(begin):
            return self._with_retries(lambda: self._limited(begin, end, limit)).document()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Where the stream ends, for the query's progress."""
        try:
            return self._end().document()
        except connections.FAILURES:
            return None  # it is for people; a query does not end of it

    def getDefaultReadLimit(self) -> Any:
        """The limit that the options name."""
        if self._settings.max_rows is not None:
            return limits.ReadMaxRows(self._settings.max_rows)
        if self._settings.max_bytes is not None:
            return limits.ReadMaxBytes(self._settings.max_bytes)
        return limits.ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """The run ends where the stream ends now, whatever others append meanwhile."""
        self._view = None
        self._target = self._with_retries(self._end)

    def _log_start(self, begin: StreamOffset) -> None:
        """Log once that the checkpoint, and not the option, decides where reading begins."""
        asked, self._begun = not self._begun and self._settings.start != "earliest", True
        if asked:
            _log.info(
                "stream %s is read from record %d on, as the checkpoint says; startingPosition %s has no effect",
                self._name, begin.next_seq_no, self._settings.start,
            )  # fmt: skip

    def _current_view(self) -> sync.StreamView:
        if self._view is None:
            self._view = self._opened().view()
        return self._view

    def _forget_view(self) -> None:
        self._view = None

    def _end(self) -> StreamOffset:
        end = self._current_view().end()
        return StreamOffset(end.seq_no, end.position, self._opened().id)

    def _limited(self, begin: StreamOffset, end: StreamOffset, limit: Any) -> StreamOffset:
        now = self._current_view()
        if limits is not None and isinstance(limit, limits.ReadMaxRows):
            seq_no = end_by_rows(begin.next_seq_no, end.next_seq_no, limit.max_rows)
            return end if seq_no == end.next_seq_no else self._offset_at(now, seq_no)
        if limits is not None and isinstance(limit, limits.ReadMaxBytes):
            cuts = self._cuts(now, begin.next, end.next, lambda size: wanted_partitions(1, size, limit.max_bytes))
            if len(cuts) > 1:
                place = cuts[0]
                return StreamOffset(now.seq_no(place), place, self._opened().id)
        return end

    def _offset_at(self, now: sync.StreamView, seq_no: int) -> StreamOffset:
        """The place of a record; of the first one behind it that is left, where it was truncated."""
        place = now.find(AtSeqNo(seq_no))
        return StreamOffset(max(seq_no, now.seq_no(place)), place, self._opened().id)

    # -- partitions ---------------------------------------------------------------------------------------

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[StreamPartition]:
        """The batch, cut at borders of entries."""
        begin, behind = self._read(start), self._read(end)
        self._hold_from(begin)
        if behind.next_seq_no <= begin.next_seq_no:
            return []
        self._view = None  # records may have been truncated since
        with self._with_explanation(begin):
            return self._with_retries(lambda: self._cut(begin, behind))

    def _cut(self, begin: StreamOffset, end: StreamOffset) -> list[StreamPartition]:
        now = self._current_view()
        least = self._settings.min_partitions
        cuts = self._cuts(now, begin.next, end.next, lambda size: wanted_partitions(least, size, PARTITION_BYTES))
        borders = [(begin.next, begin.next_seq_no)]
        borders += [(cut, now.seq_no(cut)) for cut in cuts[:-1]]
        borders.append((end.next, end.next_seq_no))
        known = now.known(begin.next, end.next)
        return [StreamPartition(part) for part in ranges(self._name, self._opened().id, borders, known)]

    def _cuts(
        self, now: sync.StreamView, start: Position, stop: Position, target: Callable[[int], int]
    ) -> list[Position]:
        """The ends of about equal parts, at borders of entries; the last is ``stop``."""
        try:
            whole = now.splits(start, stop, target=1)
        except PositionTruncatedError as error:
            if not self._settings.count_gaps or error.position is None:
                raise
            _log.warning(
                "stream %s begins at %s by now: records from %s on are passed over", self._name, error.position, start
            )
            return [stop]
        size = sum(each.bytes for each in whole)
        count = target(size)
        found = whole if count == 1 else now.splits(start, stop, target=count)
        return [each.stop for each in found[:-1]] + [stop]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition; runs in a task."""
        part = partition.value
        assert isinstance(part, PartitionRange)
        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        return read_partition(self._settings, self._schema, part, attempt)

    # -- progress -----------------------------------------------------------------------------------------

    def commit(self, end: Mapping[str, Any]) -> None:
        """Spark asks for nothing before ``end`` any more."""
        done = self._read(end)
        self._hold_from(done).release(done.next)
        if self._settings.cursor is not None:
            self._with_retries(lambda: self._move_cursor(done.next))

    def stop(self) -> None:
        """The query has ended. Not always called: the process may just be gone."""
        if self._hold is not None:
            self._hold.stop()
        if self._cursor is not None:
            self._cursor.close()

    def _move_cursor(self, place: Position) -> None:
        if self._cursor is None:
            assert self._settings.cursor is not None
            cursor = self._opened().cursor(self._settings.cursor)
            cursor.__enter__()
            self._cursor = cursor
        self._cursor.reset(place) if self._cursor.position() < place else None

    def _hold_from(self, begin: StreamOffset) -> HoldKeeper:
        """Hold everything from ``begin`` on."""
        if self._hold is None:
            name = self._settings.hold_name or f"spark-{secrets.token_hex(8)}"
            self._hold = HoldKeeper(self._with_retries(self._opened), name, lenient=self._settings.count_gaps)
        hold = self._hold
        with self._with_explanation(begin):
            self._with_retries(lambda: hold.cover(begin.next))
        return hold

    @contextmanager
    def _with_explanation(self, begin: StreamOffset) -> Iterator[None]:
        """Explain an error of truncated records that the query has not read: which ones, and what to do."""
        try:
            yield
        except PositionTruncatedError as error:
            there = self._with_retries(lambda: self._opened().seq_no(EARLIEST))
            raise PositionTruncatedError(
                f"stream {self._name}: records {begin.next_seq_no} to {there - 1}, which this query has not read, were "
                "truncated or removed; with option onGap count they are passed over, and told in the log",
                stream=self._name,
                position=error.position,
            ) from error

    def _opened(self) -> sync.Stream:
        if self._stream is None:
            self._stream = connections.namespace(self._settings.metadata).open(self._name)
        return self._stream

    def _read(self, offset: Mapping[str, Any]) -> StreamOffset:
        return read_offset(offset, self._with_retries(self._opened).id, self._name)

    def _with_retries(self, call: Callable[[], T]) -> T:
        return call_with_retries(call, self._settings.retry_s, self._forget_view)
