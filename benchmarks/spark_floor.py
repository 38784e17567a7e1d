"""The least that a data source of Spark in Python costs: a source and a sink that touch no network."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

VALUE: Final = 256
DDL: Final = "seq_no BIGINT, value BINARY"
PARTITIONS: Final = 4


@cache
def _values(rows: int) -> Any:
    import pyarrow as pa

    return pa.array([b"x" * VALUE] * rows, pa.binary())


def _batches(first: int, end: int, rows: int) -> Iterator[Any]:
    import pyarrow as pa

    while first < end:
        some = min(rows, end - first)
        numbers = pa.array(range(first, first + some), pa.int64())
        yield pa.record_batch({"seq_no": numbers, "value": _values(some)})
        first += some


class Floor(DataSource):
    """``rows`` records in batches of ``entry``; a query has ``trigger`` of them at a time."""

    @classmethod
    def name(cls) -> str:
        return "floor"

    def schema(self) -> str:
        return DDL

    def reader(self, schema: Any) -> DataSourceReader:
        return _Rows(int(self.options["rows"]), int(self.options["entry"]))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return _Triggers(int(self.options["rows"]), int(self.options["trigger"]))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return _Sink()

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        return _QuerySink()


class _Rows(DataSourceReader):
    def __init__(self, rows: int, entry: int) -> None:
        self._rows, self._entry = rows, entry

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        share = self._rows // PARTITIONS
        return _batches(partition.value * share, (partition.value + 1) * share, self._entry)


class _Triggers(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, rows: int, trigger: int) -> None:
        self._rows, self._trigger = rows, trigger

    def initialOffset(self) -> dict[str, int]:
        return {"next": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        return {"next": min(self._rows, int((start or {"next": 0})["next"]) + self._trigger)}

    def getDefaultReadLimit(self) -> ReadMaxRows:
        return ReadMaxRows(self._trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        cuts = [start["next"] + (end["next"] - start["next"]) * part // PARTITIONS for part in range(PARTITIONS + 1)]
        return [InputPartition(range(a, b)) for a, b in pairwise(cuts)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _batches(partition.value.start, partition.value.stop, self._trigger)

    def commit(self, end: Any) -> None:
        pass


class _Sink(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        assert sum(batch.num_rows for batch in iterator) >= 0
        return WriterCommitMessage()


class _QuerySink(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        assert sum(batch.num_rows for batch in iterator) >= 0
        return WriterCommitMessage()
