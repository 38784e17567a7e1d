"""Adds, reads and tails on a cluster of real processes, one client process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.calibration import Calibration
from benchmarks.processes import ROOT, BookieProcesses, resident_mb
from benchmarks.report import Aim, Figure, Report

PURE = {"BK_CODEC": "pure"}
LOAD = "benchmarks.ledger_load"


def measure(report: Report, calibration: Calibration, directory: Path) -> None:
    """All rows of ledgers, native codec first."""
    with BookieProcesses(directory / "three") as cluster:
        _adds(report, cluster, calibration)
        _reads(report, cluster)
        _tail(report, cluster)
        _memory(report, cluster)
    with BookieProcesses(directory / "six", bookies=6) as cluster:
        _striped(report, cluster)
    with BookieProcesses(directory / "pure", environment=PURE) as cluster:
        _pure(report, cluster)
    _standalone(report, directory / "standalone")


def add(cluster: BookieProcesses, repeats: int = 3, **options: object) -> dict[str, Any]:
    """The median run of :mod:`benchmarks.ledger_load`, by rate."""
    arguments = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    pids = ",".join(map(str, cluster.pids))
    runs: list[dict[str, Any]] = [cluster.bk("add", "--pids", pids, *arguments, module=LOAD) for _ in range(repeats)]
    return sorted(runs, key=lambda run: run["entries_per_s"])[len(runs) // 2]


def _adds(report: Report, cluster: BookieProcesses, calibration: Calibration) -> None:
    report.heading("adds, 1 KB, E3/Qw3/Qa2, v3, one awaited future an entry")
    deep = add(cluster, window=1000, count=300_000)
    _note_codec(report, deep)
    report.add(Figure("CPU an entry, window 1000", deep["cpu_us"], "µs", Aim(7.5, 11, lower=True), _split(deep)))
    report.add(Figure("adds/s, window 1000", deep["entries_per_s"], "/s", Aim(200_000, 125_000), _spans(deep)))
    hundred = add(cluster, window=100, count=150_000)
    report.add(Figure("adds/s, window 100", hundred["entries_per_s"], "/s", Aim(130_000, 90_000), _spans(hundred)))
    one = add(cluster, window=1, count=10_000, warm_up=1000)
    report.add(
        Figure(
            "p50 add, window 1, over one synced write + one round trip",
            one["p50_us"] / calibration.floor_us,
            "×",
            Aim(3, 5, lower=True),
            f"{one['p50_us']:.0f} µs over {calibration.floor_us:.0f}; a bare add of three processes "
            f"{calibration.bare_add_us:.0f} µs; p99 {one['p99_us']:.0f} µs",
        )
    )
    large = add(cluster, size=65536, window=64, count=15_000, warm_up=1000)
    report.add(Figure("64 KB, window 64", large["mb_per_s"], "MB/s", Aim(350, 280), _spans(large)))
    many = add(cluster, window=1000, many=200, count=400_000)
    report.add(Figure("append_many, runs of 200, window 1000", many["entries_per_s"], "/s", None, _split(many)))
    second = add(cluster, window=1000, count=200_000, protocol="v2")
    report.add(Figure("adds/s, window 1000, v2", second["entries_per_s"], "/s", None, _split(second)))


def _striped(report: Report, cluster: BookieProcesses) -> None:
    three = add(cluster, window=1000, count=200_000)
    six = add(cluster, window=1000, count=200_000, ensemble=6)
    report.add(
        Figure(
            "CPU an entry, E6/Qw3 over E3/Qw3 (six bookies)",
            six["cpu_us"] / three["cpu_us"],
            "×",
            Aim(1.2, 1.5, lower=True),
            f"{six['cpu_us']} over {three['cpu_us']} µs",
        )
    )


def _pure(report: Report, cluster: BookieProcesses) -> None:
    report.heading("the same with the pure-Python codec")
    deep = add(cluster, window=1000, count=100_000)
    _note_codec(report, deep)
    report.add(Figure("pure: CPU an entry, window 1000", deep["cpu_us"], "µs", Aim(30, 30, lower=True), _split(deep)))
    report.add(Figure("pure: adds/s, window 1000", deep["entries_per_s"], "/s", Aim(40_000, 40_000), _spans(deep)))
    hundred = add(cluster, window=100, count=60_000)
    report.add(Figure("pure: adds/s, window 100", hundred["entries_per_s"], "/s", Aim(40_000, 40_000), _spans(hundred)))


def _reads(report: Report, cluster: BookieProcesses) -> None:
    report.heading("reads of 1 KB, one reader")
    written = cluster.bk("ledger", "append", "--json", "--size", "1000", "--count", "200000")
    ledger = str(written["ledger"])
    batch = cluster.bk("read", ledger, "--mode", "batch", "--rounds", "3", module=LOAD)
    report.add(Figure("sequential batch read", batch["entries_per_s"], "/s", Aim(1_500_000, 600_000)))
    single = cluster.bk("read", ledger, "--mode", "single", "--window", "100", module=LOAD)
    report.add(
        Figure("reads one by one, window 100", single["entries_per_s"], "/s", Aim(200_000, 100_000), _spans(single))
    )


def _tail(report: Report, cluster: BookieProcesses) -> None:
    """A writer that adds one entry at a time, a reader in long poll: from the add's call to the reader's hand."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tail", cluster.metadata], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    figures = json.loads(done.stdout.decode().splitlines()[-1])
    report.add(
        Figure(
            "tail: add to seen, p50, over the add's p50 (idle writer)",
            figures["seen_us"] / figures["add_us"],
            "×",
            Aim(2, 4, lower=True),
            f"{figures['seen_us']:.0f} over {figures['add_us']:.0f} µs",
        )
    )


def _memory(report: Report, cluster: BookieProcesses) -> None:
    add(cluster, repeats=1, window=1000, count=1_000_000)
    report.add(
        Figure(
            "memory of a bookie after 1 M more entries of 1 KB",
            resident_mb(cluster.pids),
            "MB",
            Aim(80, 150, lower=True),
        )
    )


def _standalone(report: Report, directory: Path) -> None:
    """From the command to the first durable append by a client that waits for it."""
    spans = []
    for attempt in range(3):
        home = directory / str(attempt)
        home.mkdir(parents=True)
        began = time.monotonic()
        with tempfile.TemporaryFile() as log:
            server = subprocess.Popen(
                [sys.executable, "-m", "bookkeeper.admin", "standalone", "--dir", str(home), "--webhdfs-port", "0"],
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )
            client = subprocess.run(
                [sys.executable, "-m", "benchmarks.first_append", f"sqlite://{home}/metadata.db"],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                check=True,
                env={**os.environ, "BK_BENCH_BEGAN": str(began)},
            )
            server.terminate()
            server.wait()
        spans.append(float(client.stdout))
    report.add(Figure("bk standalone, start to first durable append", median(spans), "s", Aim(1.0, 1.8, lower=True)))


def _note_codec(report: Report, run: dict[str, Any]) -> None:
    report.heading(f"  codec: {run['codec']}")


def _split(run: dict[str, Any]) -> str:
    return f"client {run['cpu_us_client']} µs, bookies {run.get('cpu_us_pids', 0)} µs; {run['entries_per_s']:,}/s"


def _spans(run: dict[str, Any]) -> str:
    cpu = run.get("cpu_us", run["cpu_us_client"])
    return f"p50 {run['p50_us'] / 1000:.2f} ms, p99 {run['p99_us'] / 1000:.2f} ms; {cpu} µs CPU"
