"""Streams beside bare ledgers on the same bookies: one process appends to both in turns, ratios side by side.

The aims beside other systems are those for a quiet machine whose sync takes about 95 µs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT, BookieProcesses
from benchmarks.report import Aim, Figure, Report
from bookkeeper.launchers.zookeeper import free_port


def measure(report: Report, directory: Path) -> None:
    """All rows of streams."""
    with BookieProcesses(directory / "streams") as cluster:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.stream_load", cluster.metadata],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            check=True,
        )
        figures: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
        command = [sys.executable, "-m", "benchmarks.stream_tails", cluster.metadata]
        followed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        figures |= json.loads(followed.stdout.decode().splitlines()[-1])
        figures |= _through_a_gateway(cluster)
    report.heading("streams: one writer, 1 KB records, E3/Qw3/Qa2")
    for window, goal in ((1, None), (100, 75_000), (1000, 150_000)):
        _window(report, window, figures[f"window {window}"], goal)
    batches = figures["batches"]
    report.add(
        Figure(
            "100 B records by append_batch, 1,000 at a time",
            batches["per_s"],
            "/s",
            Aim(600_000, 500_000),
            f"{batches['cpu_us']:.2f} µs of this process a record",
        )
    )
    _reading(report, figures)
    report.add(
        Figure("take-over of a dead owner's stream", figures["take-over"]["ms"], "ms", Aim(500, 1000, lower=True))
    )
    rates = figures["through a gateway"]
    report.add(
        Figure(
            "64 records at a time through a gateway, over the library's",
            rates["gateway"] / rates["library"],
            "×",
            None,
            f"{rates['gateway']:.0f}/s over {rates['library']:.0f}/s",
        )
    )
    tails = figures["tails"]
    all_of_them = tails["before_mb"] + tails["each_kb"] * 10
    beside = f"{tails['each_kb']:.1f} KB each of {tails['streams']}, beside {tails['before_mb']:.0f} MB"
    report.add(Figure("10,000 followed streams, projected", all_of_them, "MB", Aim(200, 200, lower=True), beside))


def _through_a_gateway(cluster: BookieProcesses) -> dict[str, Any]:
    """The appends of one process through a gateway of its own."""
    address = f"127.0.0.1:{free_port()}"
    cluster.start("gateway", "grpc", "--listen", address)
    command = [sys.executable, "-m", "benchmarks.stream_gateway", cluster.metadata, address]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout.decode().splitlines()[-1]))


def _window(report: Report, window: int, rounds: dict[str, Any], goal: int | None) -> None:
    stream, ledger = rounds["stream"], rounds["ledger"]
    spans = f"p50 {stream['p50_us']:.0f} µs, p99 {stream['p99_us']:.0f} µs; CPU {stream['cpu_us']:.1f} µs"
    beside = f"ledger {ledger['per_s']:.0f}/s, p50 {ledger['p50_us']:.0f} µs, CPU {ledger['cpu_us']:.1f} µs"
    aim = None if goal is None else Aim(goal, goal)
    report.add(Figure(f"records/s, window {window}", stream["per_s"], "/s", aim, spans))
    if window == 1:
        report.add(Figure("p50, one at a time", stream["p50_us"], "µs", Aim(500, 500, lower=True), beside))
        report.add(
            Figure("p50 over a bare ledger's", stream["p50_us"] / ledger["p50_us"], "×", Aim(1.3, 1.3, lower=True))
        )
    else:
        over = stream["per_s"] / ledger["per_s"]
        report.add(Figure(f"over a bare ledger's appends, window {window}", over, "×", Aim(1, 0.8), beside))


def _reading(report: Report, figures: dict[str, Any]) -> None:
    ledger, records, arrow = (figures[f"catch-up, {name}"] for name in ("ledger", "records", "arrow"))
    report.add(
        Figure(
            "catch-up read over batch reads of the ledger",
            records["bytes_per_s"] / ledger["bytes_per_s"],
            "×",
            Aim(0.8, 0.7),
            f"{records['per_s']:.0f} records/s, {ledger['bytes_per_s'] / 1e6:.0f} MB/s of the ledger",
        )
    )
    report.add(Figure("catch-up as Arrow", arrow["per_s"], "/s", Aim(1_000_000, 1_000_000)))
    bare = figures["single, ledger"]
    for name, says in (("iterated", "iterated"), ("next", "one at a time"), ("next of 256", "… of entries of 256")):
        each = figures[f"single, {name}"]
        beside = f"{each['per_s']:.0f}/s, CPU {each['cpu_us']:.1f} µs; ledger {bare['per_s']:.0f}/s"
        report.add(
            Figure(f"entries of one record over the ledger's, {says}", each["per_s"] / bare["per_s"], "×", None, beside)
        )
