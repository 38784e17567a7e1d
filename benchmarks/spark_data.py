"""Spark reads and writes a stream as data, beside the least that a Python source and sink cost, and beside Spark's own
JSON files.

    the same rows of 256-byte values, local[2]: rows a second, and processor time; triggers of 100 rows
    batches from stream to stream: what the Python processes take, and which ledgers are left over

*floor* is a Python source and sink of the same schema that touch no network; *raw* is the library's own batch reads, in
one process without Spark. Processor time is that of the whole session, the JVM and all Python workers; that of the
bookies stands beside it, because they take it from the same cores. *bare* writes as many bytes to three processes that
store them twice each, as bookies do, and do nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import bare_copies, spark_batches
from benchmarks.processes import ROOT, BookieProcesses
from benchmarks.report import Aim, Figure, Report

VALUE = 256
TRIGGER = 100


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    rows: int = 2_000_000
    entry: int = 1000
    rounds: int = 3
    triggers: int = 40
    batches: int = 1000


def measure(report: Report, directory: Path, size: Size) -> None:
    """Rows of reading and writing a stream."""
    with BookieProcesses(directory / "spark-data") as cluster:
        uri = cluster.metadata
        _write(uri, "values", size.rows, size.entry)
        for name in ("written", "packed", "triggered"):
            _write(uri, name, 0, 1)
        given = {
            "metadata": uri,
            "rows": size.rows,
            "entry": size.entry,
            "rounds": size.rounds,
            "bookies": cluster.pids,
        }
        _read(report, given, size, directory)
        seen = _job("write", given | {"stream": "written", "packed": "packed"}, directory)
        _compared(report, "written", size.rows, seen)
        took = {name: median(wall for wall, _, _ in runs) for name, runs in seen.items()}
        spent = {name: median(cpu for _, cpu, _ in runs) for name, runs in seen.items()}
        report.add(Figure("writing: rate over the floor's", took["floor"] / took["ours"], "×", Aim(0.7, 0.3)))
        report.add(Figure("writing: the floor's processor time over ours", spent["floor"] / spent["ours"], "×"))
        with_bookies = {name: median(cpu + theirs for _, cpu, theirs in runs) for name, runs in seen.items()}
        report.add(Figure("writing: the same with the bookies'", spent["floor"] / with_bookies["ours"], "×"))
        floor, packed = "floor, orders", "ours, orders in LZ4"
        report.add(Figure("writing orders in LZ4: rate over the floor's", took[floor] / took[packed], "×"))
        report.add(Figure("the same: the floor's processor time over ours", spent[floor] / spent[packed], "×"))
        report.add(Figure("the same with the bookies'", spent[floor] / with_bookies[packed], "×"))
        wall, cpu = bare_copies.measure(directory, size.rows * (VALUE + 4))
        note = f"{wall:.2f} s; so the floor's over both is {spent['floor'] / (spent['floor'] + cpu):.2f} at best"
        report.add(Figure("bare: processor time of three copies of the bytes", cpu, "s", None, note))
        rows = TRIGGER * size.triggers
        _write(uri, "few", rows, TRIGGER)
        more = {"rows": rows, "trigger": TRIGGER, "warm": 5, "stream": "few", "sink": "triggered"}
        _triggers(report, _job("trigger", given | more | {"files": str(directory / "checkpoints")}, directory))
        _batches(report, uri, size, directory)


def _read(report: Report, given: dict[str, Any], size: Size, directory: Path) -> None:
    raw = [_raw(given["metadata"], size.rows) for _ in range(size.rounds)]
    more = {"stream": "values", "files": str(directory / "json")}
    seen = _job("read", given | more, directory) | {"raw": raw}
    _compared(report, "read", size.rows, seen)
    rate = {name: size.rows / median(wall for wall, *_ in runs) for name, runs in seen.items()}
    spent = {name: median(cpu for _, cpu, *_ in runs) for name, runs in seen.items()}
    least = min(("floor", "raw"), key=lambda name: rate[name])
    report.add(
        Figure(f"reading: over the lower of floor and raw ({least})", rate["ours"] / rate[least], "×", Aim(0.85, 0.5))
    )
    report.add(Figure("reading: over Spark's JSON files", rate["ours"] / rate["json"], "×", Aim(1.0, 0.7)))
    times = spent["ours"] / (spent["floor"] + spent["raw"])
    report.add(Figure("reading: processor time over floor and raw together", times, "×", Aim(1.0, 1.3, lower=True)))


def _compared(report: Report, what: str, rows: int, seen: dict[str, Any]) -> None:
    report.heading(f"Spark 4.3, local[2], {rows:,} records of {VALUE} bytes {what}")
    for name, runs in seen.items():
        each = ", ".join(f"{wall:.2f} s" for wall, *_ in runs)
        note = f"{each}; {median(cpu for _, cpu, *_ in runs):.2f} s of processor"
        if theirs := [rest[0] for _, _, *rest in runs if rest]:
            note += f", {median(theirs):.2f} s of the bookies"
        rate = rows / median(wall for wall, *_ in runs) / 1000
        report.add(Figure(f"{name}: thousand rows {what}", rate, "k/s", None, note))


def _triggers(report: Report, seen: dict[str, list[float]]) -> None:
    report.heading(f"triggers of {TRIGGER} rows: median of {len(seen['source ours'])}")
    for what, over in (("source", 10), ("sink", 15)):
        ours, floor = (median(seen[f"{what} {side}"]) for side in ("ours", "floor"))
        note = f"{ours:.0f} ms over {floor:.0f} ms"
        report.add(Figure(f"{what}: a trigger over the floor's", ours - floor, "ms", Aim(over, 4 * over, True), note))


def _batches(report: Report, uri: str, size: Size, directory: Path) -> None:
    _write(uri, "first", TRIGGER * size.batches, TRIGGER)
    _write(uri, "second", 0, 1)
    given = {"metadata": uri, "stream": "first", "sink": "second", "trigger": TRIGGER, "files": str(directory / "many")}
    seen = _job("batches", given, directory)
    assert _records(uri, "second") == TRIGGER * size.batches, "each record has arrived, once"
    report.heading(f"{seen['batches']} batches of {TRIGGER} rows from stream to stream")
    early = [mb for batch, mb in seen["sizes"] if batch <= seen["batches"] // 10] or [seen["sizes"][0][1]]
    grown = max(mb for _, mb in seen["sizes"]) - max(early)
    note = f"from {max(early):.0f} MB after a tenth of them"
    report.add(Figure("the largest Python process has grown", grown, "MB", Aim(20, 20, lower=True), note))
    _write(uri, "third", 0, 1)
    own: dict[int, float] = {}
    moved = spark_batches.sizes(uri, "first", "third", TRIGGER, own.__setitem__)
    assert moved == TRIGGER * size.batches, f"{moved} records have arrived"
    first, last = own[max(1, len(own) // 10)], own[len(own)]
    note = f"{len(own)} batches by the same code in one process, {first:.0f} MB after a tenth of them"
    report.add(Figure("without Spark: the process has grown", last - first, "MB", Aim(20, 20, lower=True), note))
    note = "one is made ahead for the query's next batch"
    report.add(Figure("ledgers that no stream names", _left_over(uri), "", Aim(1, 1, lower=True), note))


def _records(uri: str, stream: str) -> int:
    """How many records a stream has."""
    from segments import sync

    with sync.connect(uri) as namespace, namespace.open(stream).read() as reader:
        return sum(batch.num_rows for batch in reader.arrow_batches())


def _left_over(uri: str) -> int:
    """How many ledgers there are that no stream's record names, beside one for each stream that was made ahead of its
    next batch: the session's end leaves that, and it is deleted with the next batch or within an hour."""
    from bookkeeper.sync import BookKeeper
    from segments import sync

    with BookKeeper.connect(uri) as client, sync.connect(uri) as namespace:
        streams = [namespace.open(name) for name in namespace.list()]
        named = {segment.ledger_id for stream in streams for segment in stream.segments()}
        left = [client.metadata(ledger) for ledger in set(client.list_ledgers()) - named]
        ahead = {each.custom.get("stream") for each in left if "staging" in each.custom and not each.is_closed}
        return len(left) - len(ahead)


def _job(kind: str, given: dict[str, Any], directory: Path) -> dict[str, Any]:
    """One session of Spark; what it has seen."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.spark_job", kind, json.dumps(given)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        start_new_session=True,
        env=_environment(directory),
    )
    seen: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return seen


def _environment(directory: Path) -> dict[str, str]:
    from bookkeeper.launchers.java import find_java
    from examples.demo_kit.worker_python import worker_python

    return {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": worker_python(sys.executable, directory),
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _write(uri: str, name: str, rows: int, entry: int) -> None:
    from segments import sync

    with sync.connect(uri) as namespace:
        stream = namespace.create(name)
        if rows:
            with stream.writer() as writer:
                batch = [b"x" * VALUE] * entry
                for _ in range(rows // entry):
                    writer.append_batch(batch)


def _raw(uri: str, rows: int) -> tuple[float, float]:
    """Seconds, and seconds of processor, to read the stream's batches as Arrow in this process."""
    from segments import sync

    with sync.connect(uri) as namespace:
        began, cpu = time.monotonic(), time.process_time()
        with namespace.open("values").read() as reader:
            found = sum(batch.num_rows for batch in reader.arrow_batches())
        assert found == rows
        return time.monotonic() - began, time.process_time() - cpu
