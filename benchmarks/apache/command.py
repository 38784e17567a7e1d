"""``python -m benchmarks apache``: measure both, print the table, write the section of docs/benchmarks.md."""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from rich.console import Console

from benchmarks.apache import document, rows, summary, surroundings
from benchmarks.apache.plan import Step, parts, steps
from benchmarks.apache.rows import Row
from benchmarks.apache.runner import Bench, Progress, Results, Stage, start_drivers
from benchmarks.apache.surroundings import PLAIN, Surroundings
from benchmarks.calibration import calibrate
from bookkeeper.errors import BookKeeperError, ConfigError
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from examples.apache_servers.jars import NEWEST, VARIABLE, VERSION, jars

FREE_GB: Final = {False: 25, True: 6}
"""What a whole run, or a quick one, may need on the disk."""
_QUICK: Final = (
    *("add-1024-1-v3", "add-1024-100-v3", "add-1024-1000-v3", "add-1024-1000-v2", "add-65536-64-v3"),
    *("cross", "namenode-1024-1", "namenode-1024-8"),
)
"""What the rows begin with that a quick run has, besides those of its kinds."""
_QUICK_KINDS: Final = ("read", "tail", "create", "recover", "memory", "start")


def main(words: Sequence[str]) -> None:
    """Run it; ends every process it started, however it ends."""
    arguments = _arguments(words)
    os.environ[VARIABLE] = arguments.release
    signal.signal(signal.SIGTERM, _end)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # an interrupt from the keyboard ends ZooKeeper first
    console = Console(width=180, highlight=False, markup=False, emoji=False)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bookkeeper-py" / "bench-apache"
    path = arguments.out or cache / ("quick.jsonl" if arguments.quick else "results.jsonl")
    results = Results(path, keep=arguments.resume or arguments.report)
    try:
        if not arguments.report:
            _measure(arguments, cache, results, console)
    except KeyboardInterrupt:
        console.print(f"interrupted; --resume goes on with what is in {results.path}")
        sys.exit(130)
    except ConfigError as error:
        sys.exit(f"cannot compare: {error}")
    except BookKeeperError as error:
        sys.exit(f"ended early, --resume goes on with what is in {results.path}: {error}")
    found = summary.summarize(results.records)
    summary.print_table(found, console)
    if arguments.write and not arguments.quick:
        document.write(found, results.records)
    console.print(f"every run is in {results.path}")


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-apache", description="Side by side with Apache BookKeeper.")
    parser.add_argument("--dir", type=Path, help="where the bookies' files go: put it on the disk that matters")
    parser.add_argument("--out", type=Path, help="where every run is recorded (default: in the cache)")
    parser.add_argument("--quick", action="store_true", help="fewer rows, one short round, nothing written")
    parser.add_argument("--resume", action="store_true", help="keep the runs that are recorded already")
    parser.add_argument("--report", action="store_true", help="measure nothing, report on what is recorded")
    parser.add_argument("--write", action="store_true", help="write the section of docs/benchmarks.md and its pictures")
    parser.add_argument("--heap-mb", type=int, default=1024, help="heap of each JVM; the release's default")
    parser.add_argument("--release", choices=[NEWEST, VERSION], default=NEWEST, help="of Apache's, to compare with")
    parser.add_argument("--in", dest="wanted", action="append", choices=[*_KINDS], help="only in these surroundings")
    parser.add_argument("--rows", help="only rows whose names begin with one of these, separated by commas")
    return parser.parse_args(words)


_KINDS: Final = ("plain", "slow-sync", "far", "tls")


def _surroundings(key: str, cache: Path) -> Surroundings:
    return {
        "plain": lambda: PLAIN,
        "slow-sync": lambda: surroundings.slow_sync(cache),
        "far": surroundings.far,
        "tls": surroundings.encrypted,
    }[key]()


def _rows(arguments: argparse.Namespace, key: str) -> list[Row]:
    chosen = list(rows.MAIN if key == "plain" else rows.elsewhere(key))
    if arguments.quick:
        chosen = [
            replace(row, rounds=1, seconds=1.0)
            for row in chosen
            if key != "plain" or row.kind in _QUICK_KINDS or row.key.startswith(_QUICK)
        ]
    if arguments.rows:
        chosen = [row for row in chosen if row.key.startswith(tuple(arguments.rows.split(",")))]
    return chosen


def _measure(arguments: argparse.Namespace, cache: Path, results: Results, console: Console) -> None:
    began = time.monotonic()
    done = results.done()
    plans: list[tuple[Surroundings, list[Step]]] = []
    for key in arguments.wanted or _KINDS:
        for part in parts(_rows(arguments, key)):
            plan = [step for step in steps(key, part) if step.key not in done]
            if any(step.round for step in plan):
                plans.append((_surroundings(key, cache), _shortened(plan) if arguments.quick else plan))
    if not plans:
        console.print("everything has been measured already")
        return
    everything = [step for _, plan in plans for step in plan]
    jars()
    with tempfile.TemporaryDirectory(prefix="bk-side-by-side-", dir=arguments.dir) as name, ExitStack() as stack:
        directory = Path(name)
        free = shutil.disk_usage(directory).free / 1e9
        if free < FREE_GB[arguments.quick]:
            raise ConfigError(f"{directory} has {free:.0f} GB free, {FREE_GB[arguments.quick]} are needed; see --dir")
        machine = calibrate(directory).text()
        results.add(
            {
                "machine": machine,
                "at": time.time(),
                "heap_mb": arguments.heap_mb,
                "quick": arguments.quick,
                "apache": arguments.release,
            }
        )
        console.print(machine)
        zookeeper = stack.enter_context(ZooKeeperServer(directory / "zookeeper"))
        drivers = start_drivers(directory, cache, arguments.heap_mb, stack)
        progress = Progress(everything, console.print)
        bench = Bench(directory, cache, zookeeper.address, arguments.heap_mb, results, progress, drivers)
        for number, (where, plan) in enumerate(plans, 1):
            console.print(f"{where.title}: starting three clusters")
            with Stage(bench, where, directory / f"stage-{number}") as stage:
                stage.perform(plan)
        results.add({"machine": calibrate(directory).text(), "at": time.time(), "took_s": time.monotonic() - began})
    console.print(f"measured in {(time.monotonic() - began) / 60:.1f} minutes")


def _shortened(plan: Sequence[Step]) -> list[Step]:
    """Warm-ups of a quick run."""
    return [
        replace(step, row=replace(step.row, seconds=min(3.0, step.row.seconds))) if not step.round else step
        for step in plan
    ]


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
