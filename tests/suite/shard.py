"""Shell: one process of tests, started, listened to, and ended with everything that it has started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from bookkeeper.launchers.patience import Patience, ProgressSigns
from bookkeeper.launchers.waiting import cpu_seconds
from tests.suite.events import Begun, Collected, Done, Ended, Event, read
from tests.suite.plan import Plan
from tests.suite.plugin import EVENTS, LIMIT_S, PLAN
from tests.suite.selection import ROOT

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_COLLECTS: Final = 5
"""Collecting may take this many times as long as a test without a sign."""


class Shard:
    """One plan in one process.

    Args:
        plan: what it runs.
        directory: for its plan, its events and what it prints.
        arguments: for pytest.
        environment: besides this process's own.
    """

    def __init__(self, plan: Plan, directory: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.plan = plan
        self.test: str | None = None
        """What runs now; None: it collects, or is between two tests."""
        self.finished = False
        """It has said that all of it was run."""
        name = f"{plan.name.replace(' ', '-')}.{len(plan.skip)}"
        self.log = directory / f"{name}.log"
        self._limit_s = LIMIT_S * _COLLECTS
        self._heard = 0
        self._rest = b""
        (directory / f"{name}.plan").write_text(plan.written())
        events = directory / f"{name}.events"
        events.touch()
        self._events = events.open("rb")
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-p", "tests.suite.plugin", *arguments, *plan.files],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment, PLAN: str(directory / f"{name}.plan"), EVENTS: str(events)},
                start_new_session=True,
                preexec_fn=_become_a_child,
            )
        self._patience = Patience(time.monotonic(), self._signs(), self._limit_s)

    @property
    def pid(self) -> int:
        return self._process.pid

    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        return self._process.poll()

    def events(self) -> Iterator[Event]:
        """What it has told since this was last asked."""
        *lines, self._rest = (self._rest + self._events.read()).split(b"\n")
        for line in lines:
            event = read(line.decode())
            self._note(event)
            yield event

    def _note(self, event: Event) -> None:
        self._heard += 1
        self._limit_s = LIMIT_S
        match event:
            case Collected():
                self.test = None
            case Begun(test, limit_s):
                self.test, self._limit_s = test, limit_s
            case Ended():
                self.test = None
            case Done():
                self.finished = True
        self._patience.quiet_s = self._limit_s  # the next look sees that something was heard

    def hangs(self, stretch: float) -> bool:
        """Whether it has made no progress for too long on a machine on which everything takes ``stretch`` times as
        long. Processor time of its processes pays, up to ten times the limit."""
        self._patience.observe(time.monotonic(), self._signs(), stretch)
        return self._patience.is_over(stretch)

    def why(self) -> str:
        return self._patience.reason()

    def say_where(self) -> None:
        """Have it write where all of its threads stand into its log."""
        if self.status() is None:
            os.kill(self.pid, signal.SIGUSR2)

    def kill(self) -> None:
        """End it and everything below it; it is gone when this returns."""
        below = descendants(self.pid)
        if self.status() is None:
            self._process.kill()
        self._process.wait()
        end(below)

    def close(self) -> None:
        self._events.close()

    def _signs(self) -> ProgressSigns:
        return ProgressSigns(self._heard, cpu_seconds(self.pid))


def adopt_orphans() -> None:
    """From now on whatever loses its parent below this process becomes its child, so that it can be found."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _become_a_child() -> None:
    """It ends with its parent, and takes Ctrl-C as usual, which a shell has its background ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def descendants(pid: int) -> dict[int, str]:
    """The processes below one that run -> their command lines."""
    found: dict[int, str] = {}
    left = [pid]
    while left:
        for child in _children(left.pop()):
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words != [b""]:  # else it has ended, and nobody has asked for its status
                found[child] = b" ".join(words).decode(errors="replace")[:200].strip()
            left.append(child)
    return found


def reap(kept: Collection[int]) -> None:
    """Ask for the status of children of this process that have ended, orphans that it was given among them.

    Args:
        kept: children whose status others ask for.
    """
    for child in _children(os.getpid()):
        if child not in kept:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)


def _children(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def end(pids: Mapping[int, str]) -> None:
    """Kill processes that are below this one."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
