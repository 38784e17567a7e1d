"""The query: plain PySpark, run as a process of its own. Nothing of this project is imported here but the sink.

    python -m examples.flights.job --data DIR --checkpoint URI --sink FILE --conf JSON

Per day of scheduled departure, carrier and origin: flights, flights that left, minutes of delay, worst
delay. The groups live in Spark's state store; a watermark of one day lets it forget old ones. Progress
is printed as one JSON line a batch, in Spark's own words.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from examples.flights.sink import DailyDelays, Sink

SCHEMA = "scheduled TIMESTAMP, carrier STRING, origin STRING, flight INT, delay INT"

STATE_STORES = {
    "hdfs": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}


def by_day(flights: DataFrame) -> DataFrame:
    """The result, streaming or batch: the same words for both."""
    return (
        flights.groupBy(f.window("scheduled", "1 day"), "carrier", "origin")
        .agg(
            f.count("*").alias("flights"),
            f.count("delay").alias("delays"),
            f.sum("delay").alias("delay_sum"),
            f.max("delay").alias("worst"),
        )
        .select(
            f.date_format("window.start", "yyyy-MM-dd").alias("day"),
            "carrier",
            "origin",
            "flights",
            "delays",
            "delay_sum",
            "worst",
        )
    )


def session(name: str, conf: dict[str, str]) -> SparkSession:
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        **conf,
    }
    return SparkSession.builder.appName(name).master("local[2,4]").config(map=settings).getOrCreate()


def run(spark: SparkSession, *, data: str, checkpoint: str, sink: Sink, files_per_trigger: int) -> None:
    """Run the query until every file has been read.

    Raises:
        StreamingQueryException: Spark's own reason why the query ended.
    """
    driver = f"{os.getpid()}"
    flights = (
        spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", files_per_trigger)
        .parquet(data)
        .withWatermark("scheduled", "1 day")
    )

    def deliver(batch: DataFrame, batch_id: int) -> None:
        sink.begin(batch_id, driver)
        sink.take(batch_id, [DailyDelays(*row) for row in batch.collect()])

    query = (
        by_day(flights)
        .writeStream.outputMode("update")
        .foreachBatch(deliver)
        .option("checkpointLocation", checkpoint)
        .queryName("flights")
        .trigger(availableNow=True)
        .start()
    )
    told = -1
    while True:
        ended = query.awaitTermination(0.1)
        for progress in query.recentProgress:
            told = _tell(progress, told)
        if ended:
            return


def _tell(progress: Any, told: int) -> int:
    """Print a batch's progress once."""
    if progress.batchId <= told or not progress.durationMs.get("commitOffsets"):
        return told
    states = progress.stateOperators
    line = {
        "batch": progress.batchId,
        "rows": progress.numInputRows,
        "rows_per_s": progress.processedRowsPerSecond,
        "ms": dict(progress.durationMs),
        "state_rows": sum(state.numRowsTotal for state in states),
        "state_commit_ms": sum(state.commitTimeMs for state in states),
        "at": time.time(),
    }
    print(json.dumps(line), flush=True)
    return int(progress.batchId)


def main() -> int:
    parser = argparse.ArgumentParser(description="The flights query, as one Spark driver.")
    parser.add_argument("--data", required=True, help="directory of Parquet files")
    parser.add_argument("--checkpoint", required=True, help="checkpointLocation")
    parser.add_argument("--sink", required=True, type=Path, help="SQLite file of the results")
    parser.add_argument("--files-per-trigger", type=int, default=3)
    parser.add_argument("--state-store", choices=sorted(STATE_STORES), default="hdfs")
    parser.add_argument("--conf", type=json.loads, default={}, help="Spark settings as a JSON object")
    arguments = parser.parse_args()
    conf = {"spark.sql.streaming.stateStore.providerClass": STATE_STORES[arguments.state_store], **arguments.conf}
    spark = session("flights", conf)
    print(json.dumps({"spark": spark.version, "pid": os.getpid()}), flush=True)
    try:
        run(
            spark,
            data=arguments.data,
            checkpoint=arguments.checkpoint,
            sink=Sink(arguments.sink),
            files_per_trigger=arguments.files_per_trigger,
        )
    except StreamingQueryException as error:
        print(json.dumps({"failed": str(error)[:4000]}), flush=True)
        return 3
    print(json.dumps({"finished": True}), flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
