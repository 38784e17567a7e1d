"""A pytest session in which bugs are planted.

The tests are collected once. Then a process is forked for each mutation: it gives the function that is mutated its new
code (who has imported it has it, too), runs the tests that reach the mutated lines, and ends with the first that fails.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Final

import pytest

from tests.mutants.mutation import Mutation, planted
from tests.mutants.reach import Reach, observe
from tests.mutants.sample import ROOT
from tests.suite.selection import selection

LEFT_OUT: Final = "not integration and not spark and not zookeeper and not interop"
"""Real processes are too slow to be run for each bug."""
BUDGET_S: Final = 90.0
"""A bug has survived if it passes this much of tests, counted by how long they take without it."""
HANGS_S: Final = 30.0
"""Beyond three times the tests' own time a bug that makes them hang has been noticed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one bug."""

    mutation: Mutation
    killed_by: str
    """The test that failed; ``hangs``; empty if it survived."""
    tests: int
    """How many reach the mutated lines."""
    seconds: float


@dataclass(slots=True)
class _Child:
    mutation: Mutation
    told: Path
    begun: float
    limit: float
    tests: int


@dataclass(slots=True, eq=False)
class Planting:
    """A pytest plugin; ``outcomes`` is filled when the session has ended."""

    mutations: Sequence[Mutation]
    directory: Path
    """For what the processes tell each other."""
    jobs: int
    on_outcome: Callable[[Outcome], None]
    on_stage: Callable[[str], None]
    reuse: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    _failed: bool = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed = self._failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        reach = self._reach(items)
        _imported({mutation.path for mutation in self.mutations})
        functions = _functions({str(mutation.path) for mutation in self.mutations})
        waiting = list(reversed(self.mutations))
        running: dict[int, _Child] = {}
        while waiting or running:
            while waiting and len(running) < self.jobs:
                self._begin(waiting.pop(), reach, items, functions, running)
            self._collect(running)
        return True

    # -- before: what reaches what ------------------------------------------------------------------------

    def _reach(self, items: Mapping[str, pytest.Item]) -> Reach:
        path = self.directory / "reach.json"
        known = Reach.read(path) if self.reuse and path.exists() else Reach()
        names = [name for name in items if name not in known.seconds]
        if not names:
            return known
        self.on_stage(f"{len(names)} tests run once without a bug, to see what they reach")
        files = sorted({mutation.path for mutation in self.mutations})
        children = {}
        for part in range(self.jobs):
            told = self.directory / f"reach.{part}.of.{os.getpid()}.json"
            if not (pid := os.fork()):
                with _ends_quietly(self.directory):
                    observe(names[part :: self.jobs], lambda name: self._passes(items[name]), files).write(told)
            children[pid] = told
        for pid in children:
            _, status = os.waitpid(pid, 0)
            if status:
                raise RuntimeError(
                    f"the run without bugs did not come to its end: {self.directory / 'error.txt'} says why"
                )
        reach = Reach.together([known, *map(Reach.read, children.values())])
        for told in children.values():
            told.unlink()
        reach.write(path)
        return reach

    def _passes(self, item: pytest.Item) -> bool:
        self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return not self._failed

    # -- one bug ------------------------------------------------------------------------------------------

    def _begin(
        self,
        mutation: Mutation,
        reach: Reach,
        items: Mapping[str, pytest.Item],
        functions: Mapping[tuple[str, str, int], list[FunctionType]],
        running: dict[int, _Child],
    ) -> None:
        tests = [test for test in reach.tests_for(mutation) if test in items]
        chosen, seconds = _within(tests, reach)
        found = functions.get((str(mutation.path), mutation.qualname, mutation.function_line), [])
        if not chosen or not found:
            self._tell(Outcome(mutation, "", len(tests) if found else 0, 0.0))
            return
        told = self.directory / f"{mutation.path.stem}.{mutation.index}.of.{os.getpid()}.json"
        if not (pid := os.fork()):
            os.setsid()
            with _ends_quietly(self.directory):
                code = planted(mutation)
                for function in found:
                    function.__code__ = code
                killer = next((name for name in chosen if not self._passes(items[name])), "")
                told.write_text(json.dumps(killer))
        running[pid] = _Child(mutation, told, time.monotonic(), HANGS_S + 3 * seconds, len(tests))

    def _collect(self, running: dict[int, _Child]) -> None:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            child = running.pop(pid)
            killer = json.loads(child.told.read_text()) if child.told.exists() else f"ends the process ({status})"
            child.told.unlink(missing_ok=True)
            self._tell(Outcome(child.mutation, killer, child.tests, time.monotonic() - child.begun))
            return
        for pid, child in running.items():
            if time.monotonic() - child.begun > child.limit:
                child.told.write_text(json.dumps("hangs"))
                os.killpg(pid, signal.SIGKILL)
        time.sleep(0.01)

    def _tell(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.on_outcome(outcome)


class OfTheCore:
    """A pytest plugin: a bug has to be noticed by a test that each run takes, not by one that is drawn some day."""

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        lists = selection()
        drawn = [item for item in items if not lists.is_core(item.nodeid, outside=False)]
        config.hook.pytest_deselected(items=drawn)
        left = set(drawn)
        items[:] = [item for item in items if item not in left]


@contextlib.contextmanager
def _ends_quietly(directory: Path) -> Iterator[None]:
    """The end of a forked process, whatever happens in it; nothing of it is printed, an error is left in a file."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    status = 1
    try:
        yield
        status = 0
    except BaseException:
        (directory / "error.txt").write_text(traceback.format_exc())
    finally:
        os._exit(status)


def _within(tests: Sequence[str], reach: Reach) -> tuple[list[str], float]:
    """As many of the tests as the budget allows, at least one; and their time."""
    chosen: list[str] = []
    seconds = 0.0
    for test in tests:
        if chosen and seconds + reach.seconds[test] > BUDGET_S:
            continue
        chosen.append(test)
        seconds += reach.seconds[test]
    return chosen, seconds


def _imported(files: Iterable[Path]) -> None:
    """Also what the product loads only when it needs it: a module that is not there yet cannot be changed."""
    for file in files:
        if file.stem != "__main__":
            parts = file.relative_to(ROOT).with_suffix("").parts
            importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))


def _functions(files: set[str]) -> dict[tuple[str, str, int], list[FunctionType]]:
    """The functions of these files that there are now, whoever holds them."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename in files:
            code = thing.__code__
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(thing)
    return found
