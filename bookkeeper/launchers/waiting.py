"""Waiting for processes that start, bounded by missing progress; see :mod:`bookkeeper.launchers.patience`.

A look at the condition costs something, and whoever starts needs the machine: so the pause between two looks is at
least ten times as long as a look.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, overload

from bookkeeper.launchers import machine_speed
from bookkeeper.launchers.patience import QUIET_S, Patience, ProgressSigns

T = TypeVar("T")

POLL_S: Final = 0.02
_POLL_MAX_S: Final = 1.0
_SHARE: Final = 10
LOOK_LONGEST_S: Final = 10.0
"""Asking a condition counts at most for so long, on a machine of the reference's speed; more is a waiter that stood
still."""
_SIGNS_S: Final = 0.5
"""Time between two looks for progress."""
_NUMBERS: Final = re.compile(r"\d+")
_KINDS_MAX: Final = 10_000
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class StalledError(TimeoutError):
    """What was waited for makes no progress; the message says what, and what it said last."""


class ProgressSource:
    """What shows progress of something that starts.

    Args:
        logs: files that it writes its stages into. A line that it has not said before, numbers aside, is progress;
            one that it repeats is none.
        files: files and directories that grow.
        pids: its processes; their children are looked at, too.
        runs: whether it runs; a wait ends at once when it does not.
    """

    def __init__(
        self,
        *,
        logs: Sequence[Path] = (),
        files: Sequence[Path] = (),
        pids: Callable[[], Iterable[int | None]] | Sequence[int | None] = (),
        runs: Callable[[], bool] = lambda: True,
    ) -> None:
        self.runs = runs
        self._logs = {path: _LogKinds(path) for path in logs}
        self._files = tuple(files)
        self._pids = pids

    def signs(self) -> ProgressSigns:
        """Look at all of it."""
        said = tuple(log.count() for log in self._logs.values())
        pids = self._pids() if callable(self._pids) else self._pids
        return ProgressSigns((said, grown(self._files)), sum(cpu_seconds(pid) for pid in pids if pid is not None))

    def last_words(self, lines: int = 15) -> str:
        """The ends of its logs, for an error message."""
        return "".join(f"\n{path}:\n{_end_of(path, lines)}" for path in self._logs)


def until(
    condition: Callable[[], T], what: object, watched: ProgressSource | None = None, *, quiet_s: float = QUIET_S
) -> T:
    """Poll until ``condition`` is true; return what it returned. Blocks.

    Args:
        what: for the error, what is waited for; a function is asked at the end.
        watched: whose progress makes the wait longer; None: only time.
        quiet_s: without progress, on a machine of the reference's speed.

    Raises:
        StalledError: nothing makes progress, or it has ended.
    """
    wait = _Wait(watched or ProgressSource(), what, quiet_s)
    while True:
        began = time.monotonic()
        if found := condition():
            return found
        now = time.monotonic()
        pause = wait.meant(now - began)
        if wait.is_due(now) and wait.is_over(now):
            machine_speed.measured_again()
            wait.require_patience()
        time.sleep(pause)


@overload
async def until_async(
    condition: Callable[[], Awaitable[T]],
    what: object,
    watched: ProgressSource | None = None,
    *,
    quiet_s: float = QUIET_S,
) -> T: ...


@overload
async def until_async(
    condition: Callable[[], T], what: object, watched: ProgressSource | None = None, *, quiet_s: float = QUIET_S
) -> T: ...


async def until_async(
    condition: Callable[[], Any], what: object, watched: ProgressSource | None = None, *, quiet_s: float = QUIET_S
) -> Any:
    """The same without holding up the loop. The condition may be a coroutine."""
    wait = _Wait(watched or ProgressSource(), what, quiet_s)
    while True:
        began = time.monotonic()
        said = condition()
        found = await said if isinstance(said, Awaitable) else said
        if found:
            return found
        now = time.monotonic()
        pause = wait.meant(now - began)
        if wait.is_due(now) and await asyncio.to_thread(wait.is_over, now):
            await asyncio.to_thread(machine_speed.measured_again)
            wait.require_patience()
        await asyncio.sleep(pause)


def pause_s(look_s: float) -> float:
    """How long to pause after a look that took so long."""
    return min(max(POLL_S, _SHARE * look_s), max(_POLL_MAX_S, min(look_s, LOOK_LONGEST_S)))


class _Wait:
    """One wait: looks for progress from time to time."""

    def __init__(self, watched: ProgressSource, what: object, quiet_s: float) -> None:
        self._watched = watched
        self._what = what
        self._patience = Patience(time.monotonic(), watched.signs(), quiet_s)
        self._due = time.monotonic() + _SIGNS_S
        self._meant_s = 0.0

    def meant(self, look_s: float) -> float:
        """Note that the condition was asked for so long. Returns how long to pause."""
        pause = pause_s(look_s)
        self._meant_s += min(look_s, LOOK_LONGEST_S * machine_speed.stretch()) + pause
        return pause

    def is_due(self, now: float) -> bool:
        if not self._watched.runs():
            raise StalledError(f"{self._description} has ended{self._watched.last_words()}")
        return now >= self._due

    def is_over(self, now: float) -> bool:
        stretch = machine_speed.stretch()
        self._patience.observe(now, self._watched.signs(), stretch, self._meant_s)
        self._meant_s = 0.0
        self._due = now + _SIGNS_S
        return self._patience.is_over(stretch)

    def require_patience(self) -> None:
        """Raises: StalledError: it is over also at the speed that was measured now."""
        if self._patience.is_over(machine_speed.stretch()):
            raise StalledError(
                f"{self._description} is not there, and {self._patience.reason()} ({machine_speed.speed_text()})"
                f"{self._watched.last_words()}"
            )

    @property
    def _description(self) -> str:
        return str(self._what() if callable(self._what) else self._what)


class _LogKinds:
    """How many kinds of lines a log has: lines that differ in numbers only are one kind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._rest = b""
        self._kinds: set[int] = set()

    def count(self) -> int:
        try:
            with self._path.open("rb") as log:
                log.seek(self._at)
                data = log.read(1 << 20)
        except OSError:
            return len(self._kinds)
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if len(self._kinds) < _KINDS_MAX:
                self._kinds.add(hash(_NUMBERS.sub("", line.decode(errors="replace"))))
        return len(self._kinds)


def grown(paths: Sequence[Path]) -> int:
    """The bytes of files, and of everything below directories. What is not there, or goes meanwhile, has none."""
    total = 0
    for path in paths:
        try:
            total += path.lstat().st_size if not path.is_dir() else 1 + grown(list(path.iterdir()))
        except OSError:
            continue
    return total


def cpu_seconds(pid: int) -> float:
    """The processor time of a process and of all that it has started; 0 once it is gone."""
    seconds, left = 0.0, [pid]
    while left:
        number = left.pop()
        try:
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            seconds += sum(int(field) for field in fields[11:15]) / _TICKS
            for task in Path(f"/proc/{number}/task").iterdir():
                left += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, ValueError, IndexError):
            continue
    return seconds


def _end_of(path: Path, lines: int) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return "(nothing)"
