"""One JVM with everything of Spark's: ``python -m tests.clients.in_spark '{"location": "webhdfs://..."}'``.

Hadoop's Java client (FileSystem, as Spark and everything else in Java uses it) writes and reads files; Spark reads what
it wrote; then two queries, one with each state store, take batches of new keys only, so that state grows by whole
batches and its files are as large as real ones. Prints a line of JSON for each outcome.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.drive import Outcome, drive, told

STATE = "org.apache.spark.sql.execution.streaming.state"
PROVIDERS = {"hdfs": f"{STATE}.HDFSBackedStateStoreProvider", "rocksdb": f"{STATE}.RocksDBStateStoreProvider"}


@dataclass
class Job:
    """What the process is told."""

    location: str
    conf: dict[str, str] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    rounds: int = 1
    keys: int = 60_000
    """New ones in each batch."""
    batches: int = 2


class JavaClient:
    """Hadoop's FileSystem in the session's JVM. Files go by way of a local one: nothing of them passes Python."""

    def __init__(self, spark: Any, location: str, *, copy: bool) -> None:
        self._hadoop = spark._jvm.org.apache.hadoop
        conf = spark._jsc.hadoopConfiguration()
        self._files = self._hadoop.fs.Path(location).getFileSystem(conf)
        self._local = Path(tempfile.mkdtemp(prefix="java-client-"))
        self._root = location
        self._copy = copy
        self.name = f"Hadoop's Java client, {'a file copied' if copy else 'createFile, overwriting'}"

    def _path(self, path: str) -> Any:
        return self._hadoop.fs.Path(self._root + path)

    def write(self, path: str, data: bytes) -> None:
        if self._copy:
            (self._local / "out").write_bytes(data)
            self._files.copyFromLocalFile(False, True, self._hadoop.fs.Path(f"{self._local}/out"), self._path(path))
            return
        for _ in range(2):  # the second finds a file that is there
            out = self._files.createFile(self._path(path)).overwrite(True).recursive().build()
            out.write(bytearray(data))
            out.close()

    def read(self, path: str) -> bytes:
        self._files.copyToLocalFile(False, self._path(path), self._hadoop.fs.Path(f"{self._local}/in"), True)
        return (self._local / "in").read_bytes()


def outcomes(job: Job) -> Iterator[Outcome]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.host", "127.0.0.1")
    for name, value in job.conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    yield from drive(JavaClient(spark, job.location, copy=True), job.sizes, job.rounds)
    yield from drive(JavaClient(spark, job.location, copy=False), [s for s in job.sizes if s <= 1 << 20], job.rounds)
    yield outcome("Spark reads JSON", lambda: reads_json(spark, job.location))
    for store in PROVIDERS:
        yield outcome(f"Spark, state in {store}", lambda: runs(spark, job, store))  # noqa: B023


def outcome(name: str, act: Any) -> Outcome:
    began = time.monotonic()
    error = told(act)
    return Outcome(name, 0, time.monotonic() - began, error)


def reads_json(spark: Any, location: str) -> None:
    """Written by Spark, split among tasks by where its blocks lie."""
    spark.range(1000).write.mode("overwrite").json(f"{location}/rows.json")
    rows = spark.read.json(f"{location}/rows.json")
    found = rows.agg({"id": "sum"}).first()[0], rows.count()
    if found != (499_500, 1000):
        raise ValueError(f"the sum and number of what was read are {found}")


def runs(spark: Any, job: Job, store: str) -> None:
    """A query whose state grows by ``keys`` rows a batch."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", PROVIDERS[store])
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", job.keys).load()
    counts = source.groupBy("value").count()
    seen: list[int] = []

    def take(frame: Any, batch: int) -> None:
        if batch < job.batches:
            seen.append(frame.count())

    writer = counts.writeStream.outputMode("update").foreachBatch(take)
    query = writer.option("checkpointLocation", f"{job.location}/state-{store}").start()
    while len(seen) < job.batches and query.exception() is None:
        time.sleep(0.05)
    failure = query.exception()
    query.stop()
    if failure is not None:
        raise failure
    if seen != [job.keys] * job.batches:
        raise ValueError(f"batches had {seen} groups")


def main(job: Job) -> None:
    for found in outcomes(job):
        sys.stdout.write(json.dumps(dataclasses.asdict(found)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
