"""A short stateful query, run as a process of its own: ``python streaming_job.py '{"location": ...}'``.

Counts and sums by key over ``rate-micro-batch``, whose batches hold the same rows whenever they are planned
again. The sink writes one file a batch, by the batch's number, notes every attempt, and takes none after ``until``.
Prints one JSON line at its end: ``{"finished": last batch}`` or ``{"failed": text of the exception}``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROWS = 50
KEYS = 7


@dataclass
class Job:
    """What the process is told."""

    location: str
    out: str
    conf: dict[str, str] = field(default_factory=dict)
    until: int = 5
    hold: int | None = None
    """At this batch the sink stops, with everything read and nothing written."""
    hold_s: float = 600.0
    pause_s: float = 0.0
    """How long every batch takes in the sink."""


def expected(batch: int) -> list[list[int]]:
    """What the sink must be given in this batch: every key changes in every batch."""
    values = range((batch + 1) * ROWS)
    return [[key, len(found), sum(found)] for key in range(KEYS) if (found := [v for v in values if v % KEYS == key])]


def main(job: Job) -> None:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as f

    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.codegen.factoryMode", "NO_CODEGEN")  # a short job: compiling costs more
    builder = builder.config("spark.sql.codegen.wholeStage", "false")
    for name, value in job.conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    out = Path(job.out)

    def write(frame: DataFrame, batch: int) -> None:
        if batch > job.until:
            raise EnoughError
        rows = sorted([r.k, r.n, r.s] for r in frame.collect())
        with (out / "attempts").open("a") as attempts:
            attempts.write(f"{batch}\n")
        if batch == job.hold:
            time.sleep(job.hold_s)
        time.sleep(job.pause_s)
        temporary = out / f".{batch}"
        temporary.write_text(json.dumps(rows))
        temporary.rename(out / str(batch))

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    counts = source.groupBy((f.col("value") % KEYS).alias("k")).agg(f.count("*").alias("n"), f.sum("value").alias("s"))
    writer = counts.writeStream.outputMode("update").foreachBatch(write)
    try:
        query = writer.option("checkpointLocation", job.location).start()
    except Exception as error:
        say({"failed": str(error)})
    else:
        say(watch(query, job))
    spark.stop()
    os._exit(0)


class EnoughError(Exception):
    """Batch ``until`` is the last one that the sink takes. However late the query is stopped, no other is finished."""


def watch(query: Any, job: Job) -> dict[str, Any]:
    while True:
        time.sleep(0.05)
        failure = query.exception()
        progress = query.lastProgress
        if progress is not None and progress["batchId"] >= job.until:
            query.stop()
            return {"finished": progress["batchId"]}
        if failure is not None:
            return {"failed": str(failure)}


def say(fields: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
