"""Counts instead of times: the instructions and system calls that one piece of work costs client and bookies.

    python -m benchmarks instructions [ROW...]

Instructions are counted by valgrind's callgrind, in user mode, in the client and each bookie apart; system calls by
strace, in a second run. Neither minds other load on the machine, so that they can be compared from day to day and from
machine to machine of one kind. What they do not say is how long anything waits.

Everything takes some fifty times as long while it is counted, so that what processes do by the clock would weigh fifty
times too much. Metadata are in ZooKeeper, which tells its news by itself. The rest is counted first, while nothing else
is done, and taken off by the second.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from benchmarks.instruction_load import SIMULATED
from benchmarks.processes import ROOT, BookieProcesses
from bookkeeper.launchers.zookeeper import ZooKeeperServer


@dataclass(frozen=True, slots=True)
class CountedWork:
    """A piece of work, how often it is done, and how many instructions it may take.

    The budgets are those of a run with CPython 3.11 and a tenth more; client, and all bookies together."""

    name: str
    command: dict[str, Any]
    count: int
    client: int = 0
    bookies: int = 0


def _adds(window: int, protocol: str, count: int, client: int, bookies: int) -> CountedWork:
    command = {"kind": "adds", "window": window, "protocol": protocol}
    return CountedWork(f"add-{window}-{protocol}", command, count, client, bookies)


ROWS: Final = (
    _adds(1, "v3", 400, 275_000, 580_000),
    _adds(1, "v2", 400, 275_000, 580_000),
    _adds(1000, "v3", 20_000, 18_000, 5_500),
    _adds(1000, "v2", 20_000, 16_500, 4_500),
    CountedWork("add-64-kb", {"kind": "adds", "window": 64, "size": 65536}, 640, 110_000, 445_000),
    CountedWork("read", {"kind": "reads", "window": 1}, 400, 106_000, 135_000),
    CountedWork("read-1000", {"kind": "reads", "window": 1000}, 20_000, 19_500, 4_300),
    CountedWork("read-random", {"kind": "reads", "window": 100, "random": True}, 10_000, 28_000, 13_500),
    CountedWork("read-batch", {"kind": "reads", "window": 0}, 20_000, 1_700, 500),
    CountedWork("create-close", {"kind": "creations"}, 100, 2_700_000, 300_000),
    CountedWork("tail", {"kind": "tails"}, 300, 1_090_000, 1_900_000),
    CountedWork("record-1", {"kind": "records", "window": 1}, 400, 430_000, 610_000),
    CountedWork("record-1000", {"kind": "records", "window": 1000}, 20_000, 17_500, 9_800),
)


SIMULATED_ROWS: Final = (
    (CountedWork("simulated-1", {"kind": "adds", "window": 1}, 100), 2_200_000),
    (CountedWork("simulated-100", {"kind": "adds", "window": 100}, 2000), 167_000),
)
"""Adds in a simulated cluster, each with its budget: what CPython 3.11 takes, and three parts in a hundred. Most of it
is the simulation; it is the same in each run, so that little more is noticed."""

SESSION_S: Final = 300.0
"""Sessions with the metadata service outlast a process that is slow because it is counted."""

REST_S: Final = 4.0
"""So long is counted what processes do by the clock."""


class ProcessCounter(Protocol):
    """Counts something in processes."""

    def inside(self) -> Sequence[str]:
        """What to put before the command of a process that is counted."""
        ...

    def begin(self, pids: Sequence[int]) -> None: ...

    def end(self) -> list[int]:
        """What the processes did since :meth:`begin`, in their order."""
        ...


class Instructions:
    """By callgrind. ``directory`` gets its files: the last part of a process is its profile of a row."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pids: Sequence[int] = ()

    def inside(self) -> Sequence[str]:
        pattern = f"--callgrind-out-file={self._directory}/%p.callgrind"
        return ("valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", pattern)

    def begin(self, pids: Sequence[int]) -> None:
        self._pids = pids
        for pid in pids:
            self._ask(pid, "instrumentation", "on")
            self._ask(pid, "zero")

    def end(self) -> list[int]:
        for pid in self._pids:
            self._ask(pid, "dump")
            self._ask(pid, "instrumentation", "off")
        return [self._newest(pid) for pid in self._pids]

    def _ask(self, pid: int, *words: str) -> None:
        subprocess.run(["vgdb", f"--pid={pid}", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def _newest(self, pid: int) -> int:
        parts = self._directory.glob(f"{pid}.callgrind.*")
        newest = max(parts, key=lambda path: int(path.suffix[1:]))
        found = re.search(r"^totals: (\d+)", newest.read_text(), re.MULTILINE)
        assert found is not None, f"{newest} has no totals"
        return int(found[1])


class SystemCalls:
    """By strace."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: list[tuple[subprocess.Popen[bytes], Path]] = []

    def inside(self) -> Sequence[str]:
        return ()

    def begin(self, pids: Sequence[int]) -> None:
        self._running = []
        for pid in pids:
            path = self._directory / f"{pid}.strace"
            command = ["strace", "-f", "-c", "-o", str(path), "-p", str(pid)]
            process = subprocess.Popen(command, stderr=subprocess.PIPE)
            assert process.stderr is not None
            process.stderr.readline()  # "attached"
            self._running.append((process, path))

    def end(self) -> list[int]:
        counts = []
        for process, path in self._running:
            process.send_signal(signal.SIGINT)
            process.communicate()
            table = path.read_text()
            found = re.search(r"^100\.00\s+\S+\s+\S+\s+(\d+).*total$", table, re.MULTILINE)
            counts.append(int(found[1]) if found else 0)
        return counts


@dataclass(frozen=True, slots=True)
class Counts:
    """What one piece of work of a row costs."""

    row: CountedWork
    client: float
    bookies: float

    def pairs(self) -> tuple[tuple[float, int], tuple[float, int]]:
        """What was counted and its budget, of the client and of the bookies."""
        return (self.client, self.row.client), (self.bookies, self.row.bookies)

    def within(self) -> bool:
        """Whether the row's budgets hold."""
        return all(seen <= most for seen, most in self.pairs())


def missing(*tools: str) -> str:
    """Which of the tools are not installed, in words; empty if all are."""
    absent = [tool for tool in tools if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def count(rows: Sequence[CountedWork], counter: ProcessCounter, directory: Path, metadata: str) -> list[Counts]:
    """Start three bookies and a client, and count each row."""
    counted = []
    with ExitStack() as stack:
        patient = {"BK_METADATA_SESSION": f"{SESSION_S:.0f}"}
        cluster = BookieProcesses(directory, environment=patient, metadata=metadata, inside=counter.inside())
        stack.enter_context(cluster)
        client = stack.enter_context(_client(counter, cluster.metadata))
        stack.callback(client.kill)
        pids = [client.pid, *cluster.pids]
        for row in rows:
            _tell(client, json.dumps(row.command | {"row": row.name, "count": row.count}), "ready")
            idle, rested_s = _counted(counter, pids, lambda: time.sleep(REST_S))
            busy, worked_s = _counted(counter, pids, lambda: _tell(client, "", "done"))
            _tell(client, "")
            own, *others = (max(0.0, work - rest * worked_s / rested_s) for work, rest in zip(busy, idle, strict=True))
            counted.append(Counts(row, own / row.count, sum(others) / row.count))
        assert client.stdin is not None
        client.stdin.close()
        client.wait()
    return counted


def count_simulated(rows: Sequence[CountedWork], directory: Path) -> list[float]:
    """The instructions of one piece of work in a simulated cluster: client, bookies and simulation together."""
    counter = Instructions(directory)
    counted = []
    with ExitStack() as stack:
        process = stack.enter_context(_client(counter, SIMULATED))
        stack.callback(process.kill)
        for row in rows:
            _tell(process, json.dumps(row.command | {"row": row.name, "count": row.count}), "ready")
            (total,), _ = _counted(counter, [process.pid], lambda: _tell(process, "", "done"))
            _tell(process, "")
            counted.append(total / row.count)
    return counted


def _counted(counter: ProcessCounter, pids: Sequence[int], work: Callable[[], None]) -> tuple[list[int], float]:
    """What the processes did meanwhile, and how many seconds it took."""
    counter.begin(pids)
    began = time.monotonic()
    work()
    took = time.monotonic() - began
    return counter.end(), took


def _client(counter: ProcessCounter, metadata: str) -> subprocess.Popen[str]:
    command = [*counter.inside(), sys.executable, "-m", "benchmarks.instruction_load", metadata]
    same = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.Popen(command, cwd=ROOT, env=same, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _tell(client: subprocess.Popen[str], line: str, answer: str = "") -> None:
    assert client.stdin is not None
    assert client.stdout is not None
    client.stdin.write(line + "\n")
    client.stdin.flush()
    if answer:
        said = client.stdout.readline().strip()
        if said != answer:
            raise RuntimeError(f"the client said {said!r} instead of {answer!r}: see its errors above")


def measure(names: Sequence[str], directory: Path, tell: Callable[[str], None] = print) -> None:
    """Count, and print the table of docs/benchmarks.md."""
    rows = [row for row in ROWS if not names or row.name in names]
    if lacking := missing("valgrind", "vgdb"):
        sys.exit(f"instructions cannot be counted here: {lacking}")
    profiles = directory / "profiles"
    profiles.mkdir(parents=True)
    calls: list[Counts] = []
    with ZooKeeperServer(directory / "zookeeper", max_session_s=SESSION_S) as zookeeper:
        instructions = count(rows, Instructions(profiles), directory / "counted", zookeeper.uri)
        if lacking := missing("strace"):
            tell(f"system calls are not counted: {lacking}")
        else:
            traced = f"zk://{zookeeper.address}/traced"
            calls = count(rows, SystemCalls(profiles), directory / "traced", traced)
    tell("| row | client, instructions | budget | three bookies | budget | client, system calls | three bookies |")
    tell("|---|---|---|---|---|---|---|")
    for index, each in enumerate(instructions):
        traced = f"{calls[index].client:.3g} | {calls[index].bookies:.3g}" if calls else "– | –"
        over = "" if each.within() else " **over**"
        own, others = (f"{seen:,.0f} | {most:,}" for seen, most in each.pairs())
        tell(f"| {each.row.name} | {own} | {others}{over} | {traced} |")
