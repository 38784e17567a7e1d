"""Shell: what there is now, as a table: streams, a ledger.

The partitions are planned once and kept with the DataFrame: one that is used twice shows the same snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceReader, InputPartition

from bookkeeper.amounts import counted
from bookkeeper.errors import in_words
from segments.errors import PositionTruncatedError, StreamNotFoundError
from segments.position import EARLIEST, Position
from spark_wal.data_source import connections
from spark_wal.data_source.columns import arrow_schema, rows_batch
from spark_wal.data_source.connections import FAILURES, RetryTimer, call_with_retries
from spark_wal.data_source.name_pattern import no_match
from spark_wal.data_source.options import DataSourceOptionError
from spark_wal.data_source.partition_reader import PartitionCountError, columns_for, read_partition
from spark_wal.data_source.stream_plan import PartitionRange, ranges, wanted_partitions
from spark_wal.data_source.worker_heap import freeze_loaded_objects

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from bookkeeper.client.known import KnownCluster, KnownLedger
    from segments import sync
    from spark_wal.data_source.options import ReadSettings

_log = logging.getLogger(__name__)

T = TypeVar("T")

PARTITION_BYTES: Final = 128 << 20
_ROWS: Final = 10_000
_BYTES: Final = 4 << 20
"""Of one batch of a ledger's or a journal's rows; a row that is larger goes alone."""


class NumberRange(NamedTuple):
    """Entries or edits from ``first`` up to, and with, ``last``."""

    first: int
    last: int


class LedgerRange(NamedTuple):
    """Entries of a ledger, and what a task must know to read them."""

    entries: NumberRange
    ledger: KnownLedger
    cluster: KnownCluster


class TablePartition(InputPartition):
    """A partition as Spark hands it to a task. Where there is nothing to read Spark makes one itself, without a range,
    and has it read."""

    def __init__(self, part: PartitionRange | NumberRange | LedgerRange) -> None:
        super().__init__(part)


class StreamsRows(DataSourceReader):
    """The records of one stream, or of all whose names begin alike."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        columns_for(settings, schema)
        self._settings, self._schema = settings, schema

    def partitions(self) -> Sequence[TablePartition]:
        """Ranges of records, cut at borders of entries."""
        planned = call_with_retries(self._planned, self._settings.retry_s)
        freeze_loaded_objects()
        return planned

    def _planned(self) -> list[TablePartition]:
        settings = self._settings
        namespace = connections.namespace(settings.metadata)
        if settings.stream is not None:
            return [TablePartition(part) for part in self._of_stream(namespace.open(settings.stream))]
        assert settings.streams is not None
        planned = list(_of_matching(namespace, settings.streams, self._of_stream))
        if not planned:
            names = list(namespace.list())
            raise StreamNotFoundError(no_match(settings.streams, names), stream=settings.streams)
        return [TablePartition(part) for parts in planned for part in parts]

    def _of_stream(self, stream: sync.Stream) -> list[PartitionRange]:
        settings, now = self._settings, stream.view()
        start, stop = self._start(stream.name, now), now.find(settings.stop_seek)
        whole = now.splits(start, stop, target=1)
        count = wanted_partitions(settings.min_partitions, sum(each.bytes for each in whole), PARTITION_BYTES)
        parts = now.splits(start, stop, target=count)
        if not parts:
            return []
        places = [parts[0].start, *(part.stop for part in parts)]
        borders = [(place, now.seq_no(place)) for place in places]
        return ranges(stream.name, stream.id, borders, now.known(places[0], places[-1]))

    def _start(self, name: str, now: sync.StreamView) -> Position:
        try:
            return now.find(self._settings.start_seek)
        except PositionTruncatedError as error:
            if not self._settings.count_gaps:
                raise
            begin = now.find(EARLIEST)
            _log.warning("stream %s is read from %s on, as onGap says: %s", name, begin, error)
            return begin

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition; runs in a task."""
        part = partition.value
        if part is None:
            return iter(())
        assert isinstance(part, PartitionRange)
        return read_partition(self._settings, self._schema, part, _attempt())


def _of_matching(
    namespace: sync.Namespace, pattern: str, plan: Callable[[sync.Stream], list[PartitionRange]]
) -> Iterator[list[PartitionRange]]:
    """The ranges of each stream that a prefix with a star matches. One that is deleted meanwhile is left out."""
    for name in list(namespace.list(pattern.removesuffix("*"))):
        try:
            yield plan(namespace.open(name))
        except StreamNotFoundError:
            continue


class LedgerRows(DataSourceReader):
    """The entries of one ledger that are confirmed now. An open ledger is not fenced."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings, self._schema = settings, schema
        self._wanted = arrow_schema(schema)

    def partitions(self) -> Sequence[TablePartition]:
        """Ranges of entries."""
        planned = call_with_retries(self._planned, self._settings.retry_s)
        freeze_loaded_objects()
        return planned

    def _planned(self) -> list[TablePartition]:
        settings = self._settings
        client = connections.client(settings.metadata)
        assert settings.ledger is not None
        with client.open_ledger(settings.ledger, password=self._password(), recovery=False) as ledger:
            known, last, length = ledger.known, int(ledger.last_add_confirmed), ledger.length
        first = 0 if settings.start == "earliest" else int(settings.start)
        if settings.stop != "latest":
            last = min(last, int(settings.stop) - 1)
        if first > last:
            return []
        entries = last - first + 1
        count = min(entries, wanted_partitions(settings.min_partitions, length, PARTITION_BYTES))
        borders = [first + entries * number // count for number in range(count + 1)]
        cluster = client.known_cluster([known])
        return [TablePartition(LedgerRange(NumberRange(a, b - 1), known, cluster)) for a, b in pairwise(borders)]

    def _password(self) -> bytes:
        file = self._settings.password_file
        if file is None:
            return b""
        try:
            return Path(file).read_bytes().rstrip(b"\r\n")
        except OSError as error:
            raise DataSourceOptionError(
                f"option passwordFile: {file} cannot be read by this process: {in_words(error, file)}"
            ) from error

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition; runs in a task."""
        if partition.value is None:
            return
        assert isinstance(partition.value, LedgerRange)
        part, known, cluster = partition.value
        settings, attempt = self._settings, _attempt()

        def opened() -> Any:
            client = connections.known_client(settings.metadata, cluster, fresh=attempt > 0)
            return client.open_known(known, password=self._password())

        def rows(ledger: Any, first: int) -> Iterator[tuple[int, bytes]]:
            return ((entry.entry_id, entry.payload) for entry in ledger.read(first, part.last))

        found = read_with_retries(opened, rows, part, settings.retry_s)
        yield from row_batches(found, ("entry_id", "payload"), self._wanted, part)


def read_with_retries(
    open_it: Callable[[], AbstractContextManager[T]],
    rows: Callable[[T, int], Iterator[tuple[int, bytes]]],
    part: NumberRange,
    patience_s: float,
    failures: tuple[type[Exception], ...] = FAILURES,
) -> Iterator[tuple[int, bytes]]:
    """The rows of a partition. Where reading breaks in between, by what may pass, it goes on behind the last row that
    was given."""
    following, patience = part.first, RetryTimer(patience_s)
    while following <= part.last:
        try:
            with open_it() as opened:
                for number, data in rows(opened, following):
                    yield number, data
                    following = number + 1
                    patience.succeeded()
            return
        except failures as error:
            patience.failed(error)


def row_batches(
    rows: Iterator[tuple[int, bytes]], names: tuple[str, str], wanted: Any, part: NumberRange
) -> Iterator[Any]:
    """Rows as ``pyarrow.RecordBatch``es. Raises PartitionCountError."""
    count, size = 0, 0
    some: list[tuple[int, bytes]] = []
    for row in rows:
        some.append(row)
        size += len(row[1])
        if len(some) == _ROWS or size >= _BYTES:
            yield rows_batch(some, names, wanted)
            count, size, some = count + len(some), 0, []
    if some:
        yield rows_batch(some, names, wanted)
        count += len(some)
    if count != part.last - part.first + 1:
        raise PartitionCountError(
            f"{counted(count, 'row', 'was', 'were')} read from {part.first} up to {part.last}: "
            "nothing of this task counts, and Spark runs "
            "it again"
        )


def _attempt() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()
