"""All of ``format("bookkeeper")``, once: ``python short_job.py '{"metadata": …, "home": …, "remote": …}'``.

It tells what became of each as a line of JSON: ``{"write": 100, "read": 100, "query": 100}``, or the error's text.
With ``remote`` it is a client of Spark Connect.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

ROWS = 100


def main(metadata: str, home: str, remote: str | None = None) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(remote) if remote else SparkSession.builder.master("local[2]")
    spark = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR").getOrCreate()

    def options(stream: str) -> dict[str, str]:
        return {"metadata": metadata, "stream": stream}

    def count(stream: str) -> int:
        return int(spark.read.format("bookkeeper").options(**options(stream)).load().count())

    def write() -> int:
        rows = spark.range(ROWS).selectExpr("CAST(id AS STRING) AS value")
        rows.write.format("bookkeeper").options(**options("written"), createStream="true").mode("append").save()
        return count("written")

    def each_batch() -> int:
        import spark_wal

        write = spark_wal.batch_writer(**options("batches"), app="batches", createStream="true")
        rows = spark.readStream.format("bookkeeper").options(**options("given")).load().select("value")
        run = rows.writeStream.foreachBatch(write).option("checkpointLocation", f"{home}/batches")
        run.trigger(availableNow=True).start().awaitTermination()
        return count("batches")

    def query() -> int:
        rows = spark.readStream.format("bookkeeper").options(**options("given"), maxRowsPerTrigger="60").load()
        copy = rows.select("value").writeStream.format("bookkeeper").options(**options("copied"), createStream="true")
        run = copy.option("checkpointLocation", f"{home}/checkpoint").trigger(availableNow=True).start()
        run.awaitTermination()
        error = run.exception()
        if error is not None:
            raise error
        return count("copied")

    def source() -> int:
        rows = spark.readStream.format("bookkeeper").options(**options("given")).load().select("value")
        files = rows.writeStream.format("parquet").option("checkpointLocation", f"{home}/files.checkpoint")
        files.option("path", f"{home}/files").trigger(availableNow=True).start().awaitTermination()
        return int(spark.read.parquet(f"{home}/files").count())

    def seen(scene: Callable[[], int]) -> int | str:
        try:
            return scene()
        except Exception as error:
            return str(error)

    told = {"read": seen(lambda: count("given")), "write": seen(write)}
    told |= {"source": seen(source), "foreachBatch": seen(each_batch), "query": seen(query)}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
