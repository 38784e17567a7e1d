"""Performs a plan on real clusters; every run's record is kept at once, so that an interrupted plan can go on."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.apache.clusters import BOOKIES, ApacheCluster, BenchmarkCluster, OurCluster, as_java_reads
from benchmarks.apache.drivers import DriverError, LoadDriver, java_driver, python_driver
from benchmarks.apache.plan import WARM_UP, Step
from benchmarks.apache.rows import OURS, SHIPPED, SIDES, TUNED
from benchmarks.apache.surroundings import Surroundings
from benchmarks.calibration import Quiet
from bookkeeper.ids import Address

Record = dict[str, Any]
_ATTEMPTS: Final = 2
"""Of a run that fails; that it did is reported."""
_LEDGER_ENTRIES: Final = 100_000
"""Of the ledger that is read."""
_RECOVERED_ENTRIES: Final = 10_000


class Results:
    """Records of runs in a file, a line each."""

    def __init__(self, path: Path, *, keep: bool) -> None:
        self.path = path
        self.records: list[Record] = []
        if keep and path.exists():
            self.records = [json.loads(line) for line in path.read_text().splitlines()]
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")

    def done(self) -> set[tuple[str, str, str, int]]:
        """The steps that need not be taken again."""
        return {
            (r["surroundings"], r["row"], r["side"], r["round"])
            for r in self.records
            if "row" in r and "error" not in r
        }

    def add(self, record: Record) -> None:
        self.records.append(record)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")


class Progress:
    """Says what was done and how long the rest will take."""

    def __init__(self, plan: Sequence[Step], say: Callable[[str], None]) -> None:
        self._left = sum(step.estimate_s for step in plan)
        self._count = len(plan)
        self._say = say
        self._done = 0
        self._spent = self._planned = 1.0

    def note(self, step: Step, took_s: float, what: str) -> None:
        self._done += 1
        self._left -= step.estimate_s
        self._spent += took_s
        self._planned += step.estimate_s
        left = max(0.0, self._left) * self._spent / self._planned
        number = "warm-up" if step.round == WARM_UP else f"round {step.round}"
        self._say(
            f"[{self._done}/{self._count}, {left / 60:.1f} min left] {step.surroundings}: {step.row.title}, "
            f"{step.side}, {number}: {what}"
        )


@dataclass(slots=True)
class Bench:
    """What all runs share."""

    directory: Path
    cache: Path
    zookeeper: Address
    heap_mb: int
    results: Results
    progress: Progress
    drivers: dict[str, LoadDriver]


def start_drivers(directory: Path, cache: Path, heap_mb: int, stack: ExitStack) -> dict[str, LoadDriver]:
    """Both load generators; ended with the stack."""
    ours = python_driver(directory)
    stack.callback(ours.stop)
    java = java_driver(directory, cache, heap_mb)
    stack.callback(java.stop)
    return {"python": ours, "java": java}


class Stage:
    """The three clusters in one kind of surroundings. Leaving it ends them and removes their data."""

    def __init__(self, bench: Bench, surroundings: Surroundings, home: Path) -> None:
        self._bench = bench
        self._surroundings = surroundings
        self._ledgers: dict[str, int] = {}
        home.mkdir(parents=True, exist_ok=True)
        self._home = home
        self._quiet = Quiet(home)

        def apache(name: str, tuned: bool) -> BenchmarkCluster:
            where = (home / name, bench.zookeeper, surroundings, bench.cache)
            return ApacheCluster(name, *where, tuned=tuned, heap_mb=bench.heap_mb)

        self.clusters: dict[str, BenchmarkCluster] = {
            OURS: OurCluster(OURS, home / OURS, bench.zookeeper, surroundings, bench.cache),
            SHIPPED: apache(SHIPPED, False),
            TUNED: apache(TUNED, True),
        }

    def __enter__(self) -> Stage:
        try:
            for cluster in self.clusters.values():
                cluster.open()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                for cluster in self.clusters.values():
                    for client, driver in self._bench.drivers.items():
                        driver.tell("forget", 30.0, uri=_uri(cluster, client))
        finally:
            self._end()

    def _end(self) -> None:
        for cluster in self.clusters.values():
            cluster.close()
        if not os.environ.get("BK_BENCH_KEEP"):
            shutil.rmtree(self._home, ignore_errors=True)

    def perform(self, plan: Sequence[Step]) -> None:
        """Take the steps. A run that fails is recorded as such, and the others go on."""
        for step in plan:
            began = time.monotonic()
            record: Record = {
                "surroundings": step.surroundings,
                "row": step.row.key,
                "side": step.side,
                "round": step.round,
                "at": time.time(),
            }
            for _ in range(_ATTEMPTS):
                try:
                    record |= self._take(step)
                    break
                except DriverError as error:
                    record.setdefault("failures", []).append(str(error))
                    self._require_alive()
            else:
                record["error"] = record["failures"][-1]
            if step.round != WARM_UP:
                self._bench.results.add(record)
            self._bench.progress.note(step, time.monotonic() - began, told(record))

    def _require_alive(self) -> None:
        """After a failure: nobody has died of it. Raises: DriverError: it makes no sense to go on."""
        for driver in self._bench.drivers.values():
            if not driver.running:
                raise DriverError(f"{driver.name} has ended")
        for cluster in self.clusters.values():
            if len(cluster.pids) < BOOKIES:
                raise DriverError(f"a bookie of {cluster.name} has ended, see {cluster.directory}")

    def _take(self, step: Step) -> Record:
        client, where = SIDES[step.side]
        cluster, driver = self.clusters[where], self._bench.drivers[client]
        common = {"uri": _uri(cluster, client), "protocol": step.row.protocol}
        if cluster.trust:
            common["trust"] = cluster.trust
        if step.row.kind == "memory":
            return {"resident_mb": cluster.resident_mb()}
        if step.row.kind == "start":
            return self._start(cluster, driver, common, kill=False)
        if step.row.kind == "replay":
            driver.tell("fill", 120.0, **common, size=1024, count=step.row.arguments["count"])
            return self._start(cluster, driver, common, kill=True)
        self._quiet.wait()
        if step.row.kind == "recover":
            filled = driver.tell("fill", 60.0, **common, size=1024, count=_RECOVERED_ENTRIES, close=False)
            return driver.tell("recover", 60.0, **common, ledger=filled["ledger"])
        arguments = {**step.row.arguments, "seconds": step.row.seconds, "pids": cluster.pids}
        if step.row.kind == "read":
            arguments["ledger"] = self._ledger(cluster, driver, common)
        answer = driver.tell(step.row.kind, 60.0 + 10 * step.row.seconds, **common, **arguments)
        return answer | derived(answer, step.row.arguments.get("size", 1024))

    def _ledger(self, cluster: BenchmarkCluster, driver: LoadDriver, common: dict[str, Any]) -> int:
        """The ledger that is read, written when it is first needed."""
        if cluster.name not in self._ledgers:
            filled = driver.tell("fill", 120.0, **common, size=1024, count=_LEDGER_ENTRIES)
            self._ledgers[cluster.name] = filled["ledger"]
        return self._ledgers[cluster.name]

    def _start(self, cluster: BenchmarkCluster, driver: LoadDriver, common: dict[str, Any], *, kill: bool) -> Record:
        """End all bookies, wait until ZooKeeper has forgotten them, and start one: the time to the first add on it."""
        for number in range(BOOKIES):
            cluster.end(number, kill=kill)
        cluster.await_registered(0)
        self._quiet.wait()
        began = time.monotonic()
        cluster.launch(0)
        driver.tell("first_add", 90.0, **common)
        took = time.monotonic() - began
        for number in range(1, BOOKIES):
            cluster.launch(number)
        cluster.await_registered(BOOKIES)
        cluster.advertise()
        return {"started_s": took}


def _uri(cluster: BenchmarkCluster, client: str) -> str:
    return as_java_reads(cluster.uri) if client == "java" else cluster.uri


def derived(answer: Record, size: int) -> Record:
    """Rates and CPU an entry of a run; ``others_cores`` is what the rest of the machine did meanwhile."""
    entries, seconds = max(1, answer["entries"]), answer["seconds"]
    cpu = answer["cpu_client_s"] + answer["cpu_bookies_s"]
    return {
        "rate": answer["entries"] / seconds,
        "mb_per_s": answer["entries"] * size / seconds / 1e6,
        "cpu_us": cpu / entries * 1e6,
        "cpu_client_us": answer["cpu_client_s"] / entries * 1e6,
        "cpu_bookies_us": answer["cpu_bookies_s"] / entries * 1e6,
        "others_cores": max(0.0, (answer["cpu_machine_s"] - cpu) / seconds),
    }


def told(record: Record) -> str:
    """A run in a few words."""
    if "error" in record:
        return f"FAILED: {record['error']}"
    if "rate" in record:
        return (
            f"{record['rate']:,.0f}/s, p50 {record['p50_us'] / 1000:.2f} ms, p99 {record['p99_us'] / 1000:.2f} ms, "
            f"{record['cpu_us']:.1f} µs CPU, others {record['others_cores']:.2f} cores"
        )
    for key, unit in (("recovered_s", "s"), ("started_s", "s"), ("resident_mb", "MB")):
        if key in record:
            return f"{record[key]:.3g} {unit}"
    return str(record)
