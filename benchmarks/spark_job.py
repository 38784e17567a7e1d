"""One session of Spark that measures: ``python -m benchmarks.spark_job KIND JSON``. It prints what it saw as JSON.

read     batch reads of a stream, of the floor and of JSON files, in turn
write    batch writes of the same rows to a stream and to the floor, in turn
trigger  triggers of few rows: of a stream and of the floor, and to a stream and to the floor
batches  many batches from stream to stream: what the Python processes take after the first and after the last
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks import bare_copies
from benchmarks.spark_floor import DDL, VALUE, Floor
from pyspark_bookkeeper import BookKeeperDataSource

ORDER = """concat('{"order":', id, ',"customer":"c-', pmod(id * 7919, 500000), '","token":"', md5(CAST(id AS STRING)),
 '","city":"', element_at(array('Berlin', 'Paris', 'Madrid', 'Rome', 'Oslo'), CAST(pmod(id * 31, 5) AS INT) + 1),
 '","amount":', pmod(id * 104729, 50000) / 100, ',"currency":"EUR","state":"accepted","lines":[{"article":"a-',
 pmod(id * 15485863, 100000), '","count":', pmod(id * 13, 9), '}]}')"""
"""A value that looks like those of programs: words that recur, numbers, and 16 bytes of chance in hexadecimal."""


def _in_session() -> list[tuple[str, list[str]]]:
    """Every process of this session: its id, and the fields of its state."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == os.getsid(0):
            found.append((name, fields))
    return found


def processor_s() -> float:
    """Processor time of the session: the JVM and all Python workers."""
    return sum(sum(map(int, fields[11:15])) for _, fields in _in_session()) / os.sysconf("SC_CLK_TCK")


def python_mb() -> float:
    """The largest resident set of a Python worker of the session, in MB."""
    page, sizes = os.sysconf("SC_PAGE_SIZE"), [0]
    for name, fields in _in_session():
        try:
            if b"pyspark.daemon" in Path(f"/proc/{name}/cmdline").read_bytes():
                sizes.append(int(fields[21]) * page)
        except OSError:
            continue
    return max(sizes) / 1e6


def _timed(sides: dict[str, Callable[[], object]], given: dict[str, Any]) -> dict[str, list[tuple[float, ...]]]:
    """Seconds, seconds of processor of the session, and those of the bookies, of each side, in turn; the first round,
    which warms up, is not counted."""
    seen: dict[str, list[tuple[float, ...]]] = {name: [] for name in sides}
    rounds, bookies = given["rounds"], given["bookies"]
    for number in range(rounds + 1):
        for name, run in sides.items():
            began, spent, theirs = time.monotonic(), processor_s(), bare_copies.processor_s(bookies)
            run()
            took = time.monotonic() - began, processor_s() - spent, bare_copies.processor_s(bookies) - theirs
            if number:
                seen[name].append(took)
    return seen


def _noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def read(spark: SparkSession, given: dict[str, Any]) -> object:
    """Batch reads."""
    ours = {"metadata": given["metadata"], "stream": given["stream"]}
    floor = {"rows": given["rows"], "entry": given["entry"]}
    files = given["files"]
    if not os.path.exists(files):
        rows = spark.read.format("bookkeeper").options(**ours).schema(DDL).load()
        rows.selectExpr("seq_no", "CAST(value AS STRING) value").write.json(files)
    return _timed(
        {
            "ours": lambda: _noop(spark.read.format("bookkeeper").options(**ours).schema(DDL).load()),
            "floor": lambda: _noop(spark.read.format("floor").options(**floor).load()),
            "json": lambda: _noop(spark.read.schema("seq_no BIGINT, value STRING").json(files)),
        },
        given,
    )


def write(spark: SparkSession, given: dict[str, Any]) -> object:
    """Batch writes."""
    numbers = spark.range(given["rows"])
    rows = numbers.selectExpr(f"CAST(lpad(CAST(id AS STRING), {VALUE}, 'x') AS BINARY) value")
    orders = numbers.selectExpr(f"CAST(rpad({ORDER}, {VALUE}, ' ') AS BINARY) value")
    ours = {"metadata": given["metadata"], "stream": given["stream"]}
    packed = ours | {"stream": given["packed"], "compression": "lz4"}
    return _timed(
        {
            "ours": lambda: rows.write.format("bookkeeper").options(**ours).mode("append").save(),
            "floor": lambda: rows.write.format("floor").mode("append").save(),
            "ours, orders in LZ4": lambda: orders.write.format("bookkeeper").options(**packed).mode("append").save(),
            "floor, orders": lambda: orders.write.format("floor").mode("append").save(),
        },
        given,
    )


def _triggers(query: Any, warm: int) -> list[float]:
    """Milliseconds of each trigger of a query that ends by itself, those of its beginning aside."""
    query.awaitTermination()
    return [each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["numInputRows"]][warm:]


def trigger(spark: SparkSession, given: dict[str, Any]) -> object:
    """Triggers of few rows. Each side has one query before the one that counts: the first ones of a session run in a
    JVM that compiles, whatever they read and write."""
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", given["rows"])
    source = {"metadata": given["metadata"], "stream": given["stream"], "maxRowsPerTrigger": given["trigger"]}
    floor = {"rows": given["rows"], "entry": given["trigger"], "trigger": given["trigger"]}
    sink = {"metadata": given["metadata"], "stream": given["sink"]}
    frames: dict[str, Callable[[], Any]] = {
        "ours": lambda: spark.readStream.format("bookkeeper").options(**source).schema(DDL).load(),
        "floor": lambda: spark.readStream.format("floor").options(**floor).load(),
    }
    sides: dict[str, tuple[str, str, dict[str, Any]]] = {
        "source floor": ("floor", "noop", {}),
        "source ours": ("ours", "noop", {}),
        "sink floor": ("floor", "floor", {}),
        "sink ours": ("floor", "bookkeeper", sink),
    }
    found = {}
    for number in range(2):
        for name, (source_of, kind, options) in sides.items():
            frame = frames[source_of]()
            rows = frame.select("value") if name.startswith("sink") else frame
            started = rows.writeStream.format(kind).options(**options).trigger(availableNow=True)
            query = started.option("checkpointLocation", f"{given['files']}/{name.replace(' ', '-')}-{number}").start()
            found[name] = _triggers(query, given["warm"])
    return found


def batches(spark: SparkSession, given: dict[str, Any]) -> object:
    """Many batches from stream to stream."""
    source = {"metadata": given["metadata"], "stream": given["stream"], "maxRowsPerTrigger": given["trigger"]}
    sink = {"metadata": given["metadata"], "stream": given["sink"]}
    frame = spark.readStream.format("bookkeeper").options(**source).schema(DDL).load().select("value")
    started = frame.writeStream.format("bookkeeper").options(**sink).trigger(availableNow=True)
    query = started.option("checkpointLocation", f"{given['files']}/batches").start()
    sizes: dict[int, float] = {}
    while not query.awaitTermination(1):
        progress = query.lastProgress
        if progress is not None:
            sizes[progress["batchId"]] = python_mb()
    last = query.lastProgress
    assert last is not None, "a batch was run"
    return {"batches": last["batchId"] + 1, "sizes": sorted(sizes.items())}


KINDS = {"read": read, "write": write, "trigger": trigger, "batches": batches}


def main() -> None:
    kind, given = sys.argv[1], json.loads(sys.argv[2])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    entry = given.get("entry", 10_000)
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", entry).getOrCreate()
    spark.dataSource.register(Floor)
    spark.dataSource.register(BookKeeperDataSource)
    print(json.dumps(KINDS[kind](spark, given)))
    spark.stop()


if __name__ == "__main__":
    main()
