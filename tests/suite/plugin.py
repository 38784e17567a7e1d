"""The pytest plugin of a process that was given a plan: runs what the plan says, and tells what comes of it.

The plan's file stands in the environment, and the file for events; a signal makes it write where it stands.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import resource
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import pytest

from tests.suite.costs import table
from tests.suite.events import Begun, Broken, Collected, Done, Ended, Event, written
from tests.suite.plan import Plan
from tests.suite.selection import OUTSIDE, selection

T = TypeVar("T")

PLAN: Final = "BK_TESTS_PLAN"
EVENTS: Final = "BK_TESTS_EVENTS"
LIMIT_S: Final = 120.0
"""Seconds without any progress in one test; a test that needs more says so (``@pytest.mark.timeout``)."""
COLLECTS: Final = 200
"""After so many tests all garbage is collected. Worlds and clusters are circles, which Python seldom looks for; what
they leave behind makes each look at all tasks long."""
TOGETHER: Final = ("tests/bookkeeper/admin/", "tests/bookkeeper/meta/")
"""Directories whose tests run one after the other: they share processes, which cost something as long as they live."""
_WORST: Final = {"passed": 0, "skipped": 1, "failed": 2}


def pytest_configure(config: pytest.Config) -> None:
    """Called by pytest, as all functions of this name's kind."""
    plan = Plan.read(Path(os.environ[PLAN]).read_text())
    faulthandler.register(signal.SIGUSR2, file=2, all_threads=True)
    config.pluginmanager.register(_Teller(plan, Path(os.environ[EVENTS])), "tests-teller")


def kind_of(item: pytest.Item) -> str:
    """The mark of a test with processes of its own; empty for others."""
    return next((name for name in OUTSIDE if item.get_closest_marker(name)), "")


def is_property_test(item: pytest.Item) -> bool:
    """Whether hypothesis makes its examples."""
    return item.get_closest_marker("hypothesis") is not None


def in_groups(items: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """In their order, but what belongs to one of the directories of :data:`TOGETHER` comes with the first of it."""
    groups: dict[object, list[T]] = {}
    for number, item in enumerate(items):
        directory = next((each for each in TOGETHER if name(item).startswith(each)), None)
        groups.setdefault(directory or number, []).append(item)
    return [item for group in groups.values() for item in group]


class _Teller:
    def __init__(self, plan: Plan, events: Path) -> None:
        self._plan = plan
        self._events = events.open("a", encoding="utf-8")
        self._outcome = "passed"
        self._texts: list[str] = []
        self._tests = 0

    def _tell(self, event: Event) -> None:
        self._events.write(written(event))
        self._events.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        lists, known = selection(), table().drawn_units
        if gone := lists.gone(item.nodeid for item in items):
            self._tell(Broken("tests/suite/core.toml", f"no test has these ids: {', '.join(gone)}"))
        taken = [
            item
            for item in items
            if self._plan.takes(
                lists, known, item.nodeid, outside=bool(kind_of(item)), property_test=is_property_test(item)
            )
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(taken)])
        items[:] = in_groups(taken, lambda item: item.nodeid)
        self._tell(Collected(len(taken)))

    def pytest_collection_finish(self) -> None:
        gc.collect()
        gc.freeze()  # what was imported and collected stays: no collection looks at it again

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell(Broken(report.nodeid, report.longreprtext))

    def pytest_internalerror(self, excrepr: object) -> None:
        self._tell(Broken("pytest", str(excrepr)))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        mark = item.get_closest_marker("timeout")
        self._outcome, self._texts = "passed", []
        self._tell(Begun(item.nodeid, float(mark.args[0]) if mark else LIMIT_S))
        self._tests += 1
        if self._tests % COLLECTS == 0:
            gc.collect()
        before = _cpu_seconds()
        try:
            return (yield)
        finally:
            text = "\n".join(self._texts)
            many = self._plan.many_examples
            used = round(_cpu_seconds() - before, 4)
            self._tell(Ended(item.nodeid, self._outcome, text, used, kind_of(item), is_property_test(item), many))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if _WORST[report.outcome] > _WORST[self._outcome]:
            self._outcome = report.outcome
        if report.outcome == "skipped":
            self._texts.append(str(report.longrepr[-1]) if isinstance(report.longrepr, tuple) else report.longreprtext)
        elif report.outcome == "failed":
            shown = "\n".join(f"---- {title}\n{text}" for title, text in report.sections)
            self._texts.append(f"{report.longreprtext}\n{shown}")

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._tell(Done(int(exitstatus)))
        self._events.close()


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
