"""Shell: the edits of a journal that there are now, as a table. Only who reads one loads what reads journals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from journal_manager import JournalUnavailableError
from journal_manager import sync as journals
from spark_wal.data_source.columns import arrow_schema
from spark_wal.data_source.connections import FAILURES, call_with_retries
from spark_wal.data_source.tables import NumberRange, TablePartition, read_with_retries, row_batches

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from spark_wal.data_source.options import ReadSettings

_FAILURES: Final = (*FAILURES, JournalUnavailableError)


class JournalRows(DataSourceReader):
    """The edits of one journal that are durable now: a partition for each segment."""

    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings, self._schema = settings, schema
        self._wanted = arrow_schema(schema)

    def partitions(self) -> Sequence[TablePartition]:
        """Ranges of edits."""
        return call_with_retries(self._planned, self._settings.retry_s, failures=_FAILURES)

    def _planned(self) -> list[TablePartition]:
        settings = self._settings
        first = 0 if settings.start == "earliest" else int(settings.start)
        stop = None if settings.stop == "latest" else int(settings.stop)
        found = []
        with self._opened() as reader:
            for segment in reader.segments():
                last = segment.last
                if last is None:
                    last = max((run[-1].txid for run in reader.read_runs(segment.first)), default=segment.first - 1)
                begin, end = max(first, segment.first), last if stop is None else min(last, stop - 1)
                if begin <= end:
                    found.append(TablePartition(NumberRange(begin, end)))
        return found

    def _opened(self) -> journals.JournalReader:
        assert self._settings.journal is not None
        return journals.open_reader(f"bk:{self._settings.journal}", metadata=self._settings.metadata)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a partition; runs in a task."""
        part = partition.value
        if part is None:
            return
        assert isinstance(part, NumberRange)

        def rows(reader: journals.JournalReader, first: int) -> Iterator[tuple[int, bytes]]:
            return ((op.txid, op.body) for op in reader.read(first, part.last))

        found = read_with_retries(self._opened, rows, part, self._settings.retry_s, _FAILURES)
        yield from row_batches(found, ("txid", "body"), self._wanted, part)
