"""One Spark session that runs a stateful query as often as it is told: ``python rollback_job.py '{"told": DIR, ...}'``.

Each ``DIR/N`` is a run, in order: where the checkpoint is, the directory of text files with numbers, where rows go, and
settings. The query counts and sums by remainder, one file a batch, until all files are read. Prints a line of JSON for
each run: ``{"finished": last batch}`` or ``{"failed": text of the exception}``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KEYS = 7


@dataclass
class Run:
    """What one run of the query is told."""

    location: str
    source: str
    out: str
    conf: dict[str, str] = field(default_factory=dict)
    fail_at: int | None = None
    """The batch at which the sink fails, when its state is written and its commit is not."""
    pause_s: float = 0.0
    """How long the sink takes for each batch: meanwhile snapshots are taken."""


def run(spark: Any, job: Run) -> dict[str, Any]:
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as f

    out = Path(job.out)
    out.mkdir(parents=True, exist_ok=True)
    done = [-1]

    def write(frame: DataFrame, batch: int) -> None:
        rows = sorted([r.k, r.n, r.s] for r in frame.collect())
        if batch == job.fail_at:
            raise RuntimeError(f"batch {batch} fails, as it was told")
        time.sleep(job.pause_s)
        (out / str(batch)).write_text(json.dumps(rows))
        done[0] = batch

    for name, value in job.conf.items():
        spark.conf.set(name, value)
    number = f.col("value").cast("int")
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(job.source)
    counts = lines.groupBy((number % KEYS).alias("k")).agg(f.count("*").alias("n"), f.sum(number).alias("s"))
    writer = counts.writeStream.outputMode("update").trigger(availableNow=True).foreachBatch(write)
    try:
        writer.option("checkpointLocation", job.location).start().awaitTermination()
    except Exception as error:
        return {"failed": str(error)}
    return {"finished": done[0]}


def main(told: str, conf: dict[str, str]) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.codegen.factoryMode", "NO_CODEGEN")  # a short job: compiling costs more
    builder = builder.config("spark.sql.codegen.wholeStage", "false")
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    number = 0
    while True:
        command = Path(told) / str(number)
        if not command.exists():
            time.sleep(0.05)
            continue
        sys.stdout.write(json.dumps(run(spark, Run(**json.loads(command.read_text())))) + "\n")
        sys.stdout.flush()
        number += 1
        if os.getppid() == 1:
            os._exit(1)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
