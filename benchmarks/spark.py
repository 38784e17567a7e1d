"""A stateful query of small batches, on the gateway and on file://, interleaved: what a checkpoint costs.

    rate-micro-batch, 100 rows a batch -> groupBy(key).count() -> noop; 2 shuffle partitions, HDFS-backed state

Each run is a fresh driver; figures are medians over the last half of its batches, in milliseconds, from
Spark's own progress. "default" and "FS" are the two checkpoint file managers, the same on both sides.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.gateway import start_gateway
from benchmarks.processes import ROOT, BookieProcesses
from benchmarks.report import Aim, Figure, Report

BATCHES = 80
ROUNDS = 2
FS_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

JOB = """
import json, sys, time
from statistics import median
from pyspark.sql import SparkSession
location, batches, conf = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
conf |= {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1000"}
spark = SparkSession.builder.master("local[2]").config(map=conf).getOrCreate()
rows = (spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 100).load()
    .selectExpr("value % 20 AS key").groupBy("key").count())
query = rows.writeStream.outputMode("update").format("noop").option("checkpointLocation", location).start()
while query.isActive and (query.lastProgress is None or query.lastProgress.batchId < batches):
    time.sleep(0.1)
progress = [p for p in query.recentProgress if p.durationMs.get("commitOffsets") is not None][batches // 2:]
query.stop()
def of(name):
    return median(p.durationMs[name] for p in progress)
print(json.dumps({"trigger": of("triggerExecution"), "wal": of("walCommit"), "commit": of("commitOffsets"),
    "state": median(sum(s.commitTimeMs for s in p.stateOperators) for p in progress), "batches": len(progress)}))
"""


def measure(report: Report, directory: Path) -> None:
    """Rows of Spark."""
    report.heading(f"Spark 4.3, {BATCHES} batches a run, {ROUNDS} interleaved rounds, HDFS-backed state store")
    with BookieProcesses(directory / "spark") as cluster:
        port = start_gateway(cluster)
        runs: dict[str, list[dict[str, float]]] = {}
        for number in range(ROUNDS):
            for manager in ("default", "FS"):
                for side in ("file", "gateway"):
                    local = directory / f"ckpt-{manager}-{number}"
                    location = f"file://{local}" if side == "file" else f"webhdfs://127.0.0.1:{port}/{local.name}"
                    runs.setdefault(f"{side} {manager}", []).append(_run(location, manager))
    seen = {name: {key: median(run[key] for run in of) for key in of[0]} for name, of in runs.items()}
    logs = {name: run["wal"] + run["commit"] + run["state"] for name, run in seen.items()}
    for manager, logs_aim, trigger_aim in (
        ("default", Aim(0.2, 0.3, lower=True), Aim(0.7, 0.8, lower=True)),
        ("FS", Aim(0.5, 0.75, lower=True), Aim(1.0, 1.1, lower=True)),
    ):
        ours, theirs = f"gateway {manager}", f"file {manager}"
        report.add(
            Figure(
                f"walCommit + state commit + commitOffsets over file://, {manager} manager",
                logs[ours] / logs[theirs],
                "×",
                logs_aim,
                f"{_row(seen[ours])} over {_row(seen[theirs])}",
            )
        )
        report.add(
            Figure(
                f"whole trigger over file://, {manager} manager",
                seen[ours]["trigger"] / seen[theirs]["trigger"],
                "×",
                trigger_aim,
                f"{seen[ours]['trigger']:.0f} over {seen[theirs]['trigger']:.0f} ms",
            )
        )


def _run(location: str, manager: str) -> dict[str, float]:
    from spark_wal.service import spark_conf

    conf = dict(spark_conf(location)) if location.startswith("webhdfs") else {}
    conf.pop("spark.sql.streaming.checkpointFileManagerClass", None)
    if manager == "FS":
        conf["spark.sql.streaming.checkpointFileManagerClass"] = FS_MANAGER
    done = subprocess.run(
        [sys.executable, "-c", JOB, location, str(BATCHES), json.dumps(conf)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    figures: dict[str, float] = json.loads(done.stdout.decode().splitlines()[-1])
    return figures


def _row(run: dict[str, float]) -> str:
    return f"{run['wal']:.0f}+{run['state']:.0f}+{run['commit']:.0f} ms"
