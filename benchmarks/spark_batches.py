"""Many batches from stream to stream, by the code of Spark's source and sink in one process without Spark: what that
process takes after a tenth of them and at the end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

from pyspark.sql import types as t

from benchmarks.processes import resident_mb
from segments import BatchKey, sync
from spark_wal.data_source.options import ReadSettings
from spark_wal.data_source.rows import RowColumns
from spark_wal.data_source.stream_source import QuerySource

_SCHEMA = t.StructType([t.StructField("value", t.BinaryType())])


def sizes(uri: str, source: str, sink: str, rows: int, report: Callable[[int, float], None]) -> int:
    """Move a stream's records in batches of so many rows. ``report`` is told of each: its number, and what the process
    takes then, in MB. Returns how many records there are in the sink."""
    query = QuerySource(ReadSettings(metadata=uri, stream=source, max_rows=rows), _SCHEMA)
    query.prepareForTriggerAvailableNow()
    columns, batch = RowColumns(_SCHEMA, None), 0
    with sync.connect(uri) as namespace:
        stream = namespace.open(sink)
        publisher, at = stream.publisher(), query.initialOffset()
        while (end := query.latestOffset(at, query.getDefaultReadLimit())) != at:
            staging, staged = secrets.token_hex(16), []
            for part in query.partitions(at, end):
                writer = stream.stage(staging, "batches")
                for found in query.read(part):
                    writer.add(*columns.records(found))
                staged.append(writer.finish())
            publisher.publish(BatchKey("batches", "batches", batch, None), staged)
            query.commit(end)
            at, batch = end, batch + 1
            report(batch, resident_mb([os.getpid()]))
        query.stop()
        return stream.count()
