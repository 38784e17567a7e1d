"""The query: plain PySpark from stream to stream, run as a process of its own.

    python -m examples.demo_pipeline.driver --metadata URI --checkpoint URI --conf JSON --app NAME --finish FILE

Per day of scheduled departure, carrier and origin: flights, flights that left, minutes of delay, worst delay. A group
that a batch has changed is a record of the second stream. Progress is one line of JSON a batch.
When the file ``--finish`` is there, the query reads what the stream has, and ends.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

import spark_wal
from examples.demo_pipeline.totals import FLIGHTS, TOTALS
from examples.flights.job import SCHEMA, by_day

ROWS_PER_TRIGGER: Final = 20_000


def session(conf: dict[str, str]) -> SparkSession:
    """Two executors, each a process with one core."""
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "768m",
        "spark.task.maxFailures": "8",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        **conf,
    }
    return SparkSession.builder.appName("pipeline").master("local-cluster[2,1,1024]").config(map=settings).getOrCreate()


def start(spark: SparkSession, arguments: argparse.Namespace) -> StreamingQuery:
    """The stream of flights, counted, into the stream of totals."""
    flights: DataFrame = (
        spark.readStream.format("bookkeeper")
        .schema(SCHEMA)
        .option("metadata", arguments.metadata)
        .option("stream", FLIGHTS)
        .option("startingPosition", "earliest")
        .option("valueFormat", "json")
        .option("maxRowsPerTrigger", ROWS_PER_TRIGGER)
        .load()
        .withWatermark("scheduled", "1 day")
    )
    totals = by_day(flights).select(
        f.concat_ws(" ", "day", "carrier", "origin").cast("binary").alias("key"),
        f.to_json(f.struct("day", "carrier", "origin", "flights", "delays", "delay_sum", "worst"))
        .cast("binary")
        .alias("value"),
    )
    return (
        totals.writeStream.outputMode("update")
        .foreachBatch(spark_wal.batch_writer(metadata=arguments.metadata, stream=TOTALS, app=arguments.app))
        .option("checkpointLocation", arguments.checkpoint)
        .queryName("pipeline")
        .trigger(processingTime="1 second")
        .start()
    )


def follow(query: StreamingQuery, finish: Path) -> None:
    """Tell of each batch until the query is asked to finish.

    Raises:
        StreamingQueryException: Spark's own reason why the query ended.
    """
    told = -1
    while not finish.exists():
        query.awaitTermination(0.2)
        told = _tell(query, told)
    query.processAllAvailable()
    _tell(query, told)
    query.stop()


def _tell(query: StreamingQuery, told: int) -> int:
    """Print the progress of batches that were not told of. Returns the last one's number."""
    for progress in query.recentProgress:
        if progress.batchId > told and progress.durationMs.get("commitOffsets"):
            states = progress.stateOperators
            line = {
                "batch": progress.batchId,
                "rows": progress.numInputRows,
                "ms": progress.durationMs.get("triggerExecution", 0),
                "state_rows": sum(state.numRowsTotal for state in states),
            }
            print(json.dumps(line), flush=True)
            told = progress.batchId
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description="The pipeline's query, as one Spark driver.")
    for name in ("--metadata", "--checkpoint", "--app"):
        parser.add_argument(name, required=True)
    parser.add_argument("--finish", required=True, type=Path)
    parser.add_argument("--conf", type=json.loads, default={}, help="Spark settings as a JSON object")
    arguments = parser.parse_args()
    spark = session(arguments.conf)
    print(json.dumps({"spark": spark.version, "pid": os.getpid()}), flush=True)
    try:
        follow(start(spark, arguments), arguments.finish)
    except (StreamingQueryException, PySparkException) as error:
        print(json.dumps({"failed": str(error)[:4000]}), flush=True)
        return 3
    print(json.dumps({"finished": True}), flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
