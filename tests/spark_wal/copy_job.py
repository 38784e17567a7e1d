"""A query from a stream to a stream: ``python copy_job.py '{"metadata": "zk://…", "source": "in", "sink": "out", …}'``.

It ends with the last record of the source, and tells how as a line of JSON: ``{"batches": N}``, or ``{"died": text}``.
"""

from __future__ import annotations

import json
import sys


def main(metadata: str, source: str, sink: str, checkpoint: str, rows: int) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = session.config("spark.log.level", "ERROR").getOrCreate()
    read = spark.readStream.format("bookkeeper").options(metadata=metadata, stream=source, maxRowsPerTrigger=str(rows))
    copy = read.load().select("value").writeStream.format("bookkeeper").options(metadata=metadata, stream=sink)
    query = copy.option("createStream", "true").option("checkpointLocation", checkpoint).trigger(availableNow=True)
    try:
        run = query.start()
        run.awaitTermination()
        told: dict[str, object] = {"batches": run.lastProgress.batchId + 1 if run.lastProgress else 0}
    except Exception as error:
        told = {"died": str(error)}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
