"""Decides which entry log is compacted next, and when. A pure machine: no I/O, no clock.

There are two kinds of runs. A *minor* one comes often and takes logs of which little lives; a *major* one comes rarely
and takes more of them. A run takes the logs with the smallest living share first: they win most for what is copied.
A log of which nothing lives needs no copy; collection removes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from bookkeeper.amounts import counted
from bookkeeper.storage.base.config import StorageConfig


class CompactionKind(Enum):
    MINOR = "minor"
    MAJOR = "major"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogUse:
    """What lives in an entry log."""

    log_id: int
    total: int
    """Bytes of its records."""
    live: int
    """Bytes of the records of ledgers that are not deleted."""
    filling: bool = False
    """Whether it is not finished: something may still be added, or it is kept because of a loss."""
    unreadable: str | None = None
    """Why nobody can tell what lives in it."""
    drops: frozenset[int] = frozenset()
    """Deleted ledgers in it of which other logs have records, too."""


class CompactionSchedule:
    """Owned by the loop's thread. All times are seconds of one clock that never steps."""

    def __init__(self, config: StorageConfig, now: float) -> None:
        self._config = config
        self._last = dict.fromkeys(CompactionKind, now)
        self._queue: deque[LogUse] = deque()
        self._began = self._paced = now
        self.running: CompactionKind | None = None
        """The kind of the run that is going on."""
        self.suspended = False
        """Nothing is begun or continued; changed by :meth:`suspend` and :meth:`resume`."""
        self.last_good: float | None = None
        """When a run last came to its end without an error."""
        self.left: dict[int, str] = {}
        """Logs that are left as they are, and why."""
        self.stopped_by: str | None = None
        """Why the last run did not take every log that it was to take."""

    # -- what is due --------------------------------------------------------------------------------------

    def due(self, now: float) -> CompactionKind | None:
        """The kind of run that is to begin now; None: none is."""
        if self.running is not None or self.suspended:
            return None
        for kind in (CompactionKind.MAJOR, CompactionKind.MINOR):
            interval = self.interval_s(kind)
            if interval > 0 and self.ratio(kind) > 0 and now - self._last[kind] >= interval:
                return kind
        return None

    def suspend(self) -> None:
        """Begin and continue nothing until :meth:`resume`."""
        self.suspended = True

    def resume(self) -> None:
        """The opposite of :meth:`suspend`."""
        self.suspended = False

    def ratio(self, kind: CompactionKind) -> float:
        """A log is taken if less than this share of it lives."""
        minor = kind is CompactionKind.MINOR
        return self._config.minor_compaction_ratio if minor else self._config.major_compaction_ratio

    def interval_s(self, kind: CompactionKind) -> float:
        """Seconds from one run of a kind to the next."""
        minor = kind is CompactionKind.MINOR
        return self._config.minor_compaction_interval_s if minor else self._config.major_compaction_interval_s

    # -- one run ------------------------------------------------------------------------------------------

    def takes(self, kind: CompactionKind, log: LogUse) -> bool:
        """Whether a run of this kind is to copy what lives in a log."""
        if log.filling or log.unreadable is not None or log.log_id in self.left:
            return False
        return 0 < log.live < self.ratio(kind) * log.total

    def begin(self, kind: CompactionKind, now: float) -> None:
        """A run begins."""
        assert self.running is None, "one run at a time"
        self.running, self._began, self._paced, self.stopped_by = kind, now, now, None
        self._queue.clear()

    def choose(self, logs: Iterable[LogUse]) -> int:
        """Put the logs that the run takes in order. Returns how many they are."""
        assert self.running is not None
        kind = self.running
        taken = [log for log in logs if self.takes(kind, log)]
        self._queue.extend(sorted(taken, key=lambda log: (log.live / log.total, log.log_id)))
        return len(self._queue)

    def next_log(self, now: float, room: int) -> LogUse | None:
        """The log that is compacted next; None: the run is over, and ``stopped_by`` says why if logs are left over.

        Args:
            room: bytes that copies may take, the reserve included.
        """
        limit = self._config.compaction_run_s
        if self._queue and 0 < limit <= now - self._began:
            self.stopped_by = (
                f"{counted(len(self._queue), 'log', 'is', 'are')} left for the next run: this one has taken {limit:g} s"
            )
            self._queue.clear()
        while self._queue:
            log = self._queue.popleft()
            if log.live <= room:
                return log
            self.stopped_by = f"what lives in log {log.log_id} needs {log.live} bytes, and {room} are free"
        return None

    def pause_s(self, count: int, now: float) -> float:
        """Seconds to wait after ``count`` bytes were read or written, so that a second has no more than it may."""
        if self._config.compaction_bytes_per_s <= 0:
            return 0.0
        self._paced = max(self._paced, now) + count / self._config.compaction_bytes_per_s
        return self._paced - now

    def leave(self, log_id: int, reason: str) -> None:
        """Something is wrong with a log: no run touches it again before the next start."""
        self.left[log_id] = reason

    def end(self, now: float, stopped_by: str | None) -> None:
        """The run is over.

        Args:
            stopped_by: the error that ended it; None: it did what it could.
        """
        assert self.running is not None
        kind, self.running = self.running, None
        self._queue.clear()
        self._last[kind] = now
        if kind is CompactionKind.MAJOR and self.ratio(kind) >= self.ratio(CompactionKind.MINOR):
            self._last[CompactionKind.MINOR] = now
        if stopped_by is None:
            self.last_good = now
        else:
            self.stopped_by = stopped_by
