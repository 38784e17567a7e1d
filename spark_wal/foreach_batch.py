"""A function for ``foreachBatch`` that writes each batch of a query into a stream, exactly once.

Spark gives sinks in Python no update mode. ``foreachBatch`` has it::

    write = spark_wal.batch_writer(metadata=uri, stream="totals", app="totals")
    query = counts.writeStream.outputMode("update").foreachBatch(write).option("checkpointLocation", place).start()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def batch_writer(*, metadata: str, stream: str, app: str, **options: str | int) -> Callable[[Any, int], None]:
    """A function for ``writeStream.foreachBatch``.

    A batch that comes again, after a crash, say, is there once, also if its rows are others then: it is known by
    ``app`` and its number. Another query under the same ``app`` is refused, unless ``txnStart`` says which number its
    batch 0 has.

    Args:
        metadata: the cluster's address.
        stream: where to write.
        app: who writes; it outlives the query's checkpoint.
        options: others of ``format("bookkeeper")`` (docs/spark-data.md).
    """

    def write(rows: Any, batch_id: int) -> None:
        writer = rows.write.format("bookkeeper").mode("append").options(**options)
        named = writer.option("metadata", metadata).option("stream", stream)
        named.option("txnAppId", app).option("txnVersion", batch_id).save()

    return write
