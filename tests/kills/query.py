"""The driver: ``python -m tests.kills.query '{"location": ..., "master": ..., "out": ..., "conf": {...}}'``.

A stateful query over ``rate-micro-batch``, whose batches hold the same rows whenever they are planned again. Every
attempt of a batch is a line of JSON in ``out``: batch, rows, and the machine's monotonic time. What becomes of the
query is a line on standard output: ``{"died": text}``. It takes orders on standard input: ``again`` starts it anew,
``stop`` lets the batch that is under way be its last, which ``{"stopped": null}`` confirms.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.spark_wal.streaming_job import KEYS, ROWS


@dataclass
class Job:
    """What it is told."""

    location: str
    master: str
    out: str
    conf: dict[str, str] = field(default_factory=dict)


class StoppedError(Exception):
    """No more batches."""


def main(job: Job) -> None:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as f

    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.pyspark.jvmStacktrace.enabled": "true",
        **job.conf,
    }
    spark = SparkSession.builder.master(job.master).config(map=conf).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    stopping = threading.Event()

    def write(frame: DataFrame, batch: int) -> None:
        if stopping.is_set():
            raise StoppedError
        rows = sorted([r.k, r.n, r.s] for r in frame.collect())
        with Path(job.out).open("a") as out:
            out.write(json.dumps({"batch": batch, "rows": rows, "at": time.monotonic()}) + "\n")

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    counts = source.groupBy((f.col("value") % KEYS).alias("k")).agg(f.count("*").alias("n"), f.sum("value").alias("s"))
    writer = counts.writeStream.outputMode("update").foreachBatch(write).option("checkpointLocation", job.location)

    orders: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            if line.strip() == "stop":
                stopping.set()
            else:
                orders.put(line)
        os._exit(0)

    threading.Thread(target=listen, name="orders", daemon=True).start()
    while True:  # in the session's own thread: elsewhere its errors come without the stack of the JVM
        try:
            writer.start().awaitTermination()
        except Exception as error:
            say({"stopped": None} if stopping.is_set() and "StoppedError" in str(error) else {"died": str(error)})
        orders.get()


def say(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
