"""Spark reads a stream as data, beside the least that a Python source costs, and beside Spark's own JSON files.

    the same rows of 256-byte values, local[2], written to noop: rows a second, and processor time

*floor* is a Python source of the same schema that touches no network; *raw* is the library's own batch reads, in one
process without Spark. Processor time is that of the whole session: the JVM and all Python workers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.processes import ROOT, BookieProcesses
from benchmarks.report import Aim, Figure, Report

ROWS = 2_000_000
ENTRY = 1000
ROUNDS = 3
VALUE = 256

JOB = """
import json, os, sys, time
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
metadata, rows, entry, size, rounds, files = sys.argv[1], *map(int, sys.argv[2:6]), sys.argv[6]
DDL = "seq_no BIGINT, value BINARY"

class Floor(DataSource):
    @classmethod
    def name(cls): return "floor"
    def schema(self): return DDL
    def reader(self, schema): return FloorReader(rows, entry, size)

class FloorReader(DataSourceReader):
    def __init__(self, rows, entry, size): self.rows, self.entry, self.size = rows, entry, size
    def partitions(self): return [InputPartition(n) for n in range(4)]
    def read(self, partition):
        import pyarrow as pa
        batch = pa.record_batch({"seq_no": pa.array(range(self.entry), pa.int64()),
            "value": pa.array([b"x" * self.size] * self.entry, pa.binary())})
        for _ in range(self.rows // self.entry // 4):
            yield batch

spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", entry).getOrCreate())
spark.dataSource.register(Floor)

def processor():
    ticks = 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat: fields = stat.read().rpartition(")")[2].split()
        except OSError: continue
        if int(fields[3]) == os.getsid(0): ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")

def ours(): return (spark.read.format("bookkeeper").options(metadata=metadata, stream="values").schema(DDL).load())
def floor(): return spark.read.format("floor").load()
def files_(): return spark.read.schema("seq_no BIGINT, value STRING").json(files)
sides = {"ours": ours, "floor": floor, "json": files_}
if not os.path.exists(files):
    ours().selectExpr("seq_no", "CAST(value AS STRING) value").write.json(files)
seen = {name: [] for name in sides}
for number in range(rounds + 1):
    for name, made in sides.items():
        began, cpu = time.monotonic(), processor()
        made().write.format("noop").mode("overwrite").save()
        if number: seen[name].append((time.monotonic() - began, processor() - cpu))
print(json.dumps(seen))
"""


def measure(report: Report, directory: Path) -> None:
    """Rows of reading a stream."""
    report.heading(f"Spark 4.3, local[2], reads {ROWS:,} records of {VALUE} bytes from a stream, {ROUNDS} rounds")
    with BookieProcesses(directory / "spark-data") as cluster:
        uri = cluster.metadata
        _write(uri)
        raw = [_raw(uri) for _ in range(ROUNDS)]
        done = subprocess.run(
            [sys.executable, "-c", JOB, uri, *map(str, (ROWS, ENTRY, VALUE, ROUNDS)), str(directory / "json")],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            start_new_session=True,
            env=_environment(),
        )
    seen = json.loads(done.stdout.decode().splitlines()[-1]) | {"raw": raw}
    rate = {name: ROWS / median(wall for wall, _ in runs) for name, runs in seen.items()}
    spent = {name: median(cpu for _, cpu in runs) for name, runs in seen.items()}
    for name, runs in seen.items():
        each = ", ".join(f"{wall:.2f} s" for wall, _ in runs)
        note = f"{each}; {spent[name]:.2f} s of processor"
        report.add(Figure(f"{name}: thousand rows read", rate[name] / 1000, "k/s", None, note))
    least = min(("floor", "raw"), key=lambda name: rate[name])
    of_least = rate["ours"] / rate[least]
    report.add(Figure(f"ours over the lower of floor and raw ({least})", of_least, "×", Aim(0.85, 0.5)))
    report.add(Figure("ours over Spark's JSON files", rate["ours"] / rate["json"], "×", Aim(1.0, 0.7)))
    times = spent["ours"] / (spent["floor"] + spent["raw"])
    report.add(Figure("processor time over that of floor and raw together", times, "×", Aim(1.0, 1.3, lower=True)))


def _environment() -> dict[str, str]:
    from bookkeeper.launchers.java import find_java

    return {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _write(uri: str) -> None:
    from segments import sync

    with sync.connect(uri) as namespace, namespace.create("values").writer() as writer:
        batch = [b"x" * VALUE] * ENTRY
        for _ in range(ROWS // ENTRY):
            writer.append_batch(batch)


def _raw(uri: str) -> tuple[float, float]:
    """Seconds, and seconds of processor, to read the stream's batches as Arrow in this process."""
    from segments import sync

    with sync.connect(uri) as namespace:
        began, cpu = time.monotonic(), time.process_time()
        with namespace.open("values").read() as reader:
            rows = sum(batch.num_rows for batch in reader.arrow_batches())
        assert rows == ROWS
        return time.monotonic() - began, time.process_time() - cpu
