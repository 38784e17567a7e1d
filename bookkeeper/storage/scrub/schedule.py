"""Decides which file is checked next, and when the next piece of it is read. A pure machine: no I/O, no clock.

A *pass* reads every file once, spread evenly over the period, and never faster than the limit. A pass that is asked for
goes as fast as the limit allows. A file about which somebody has a doubt comes next, at the limit. After a restart a
pass goes on behind the last file that was read to its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.scrub.damage import CheckedFile

Cursor = tuple[int, int]
"""Kind and number of a file."""


class ScrubSchedule:
    """Owned by the loop's thread. All times are seconds of one clock that never steps."""

    def __init__(
        self,
        config: StorageConfig,
        now: float,
        *,
        passed_s: float = 0.0,
        behind: Cursor | None = None,
        ended: bool = False,
    ) -> None:
        """
        Args:
            passed_s: seconds since the last pass began, in which this bookie ran.
            behind: the last file of it that was read to its end; None: none was.
            ended: whether that pass has come to its end.
        """
        self._period_s, self._limit = config.scrub_period_s, config.scrub_bytes_per_s
        self._began = now - passed_s
        self.behind = behind
        self.ended = ended
        """Whether the last pass came to its end."""
        self.running = False
        self.hurried = False
        """Whether the pass that is going on goes as fast as the limit allows."""
        self._queue: deque[CheckedFile] = deque()
        self._doubted: deque[CheckedFile] = deque()
        self._current: CheckedFile | None = None
        self._at_once = False

    # -- passes -------------------------------------------------------------------------------------------

    def due_in_s(self, now: float) -> float | None:
        """Seconds until a pass is to begin, or to go on; None: only when somebody asks for one."""
        if self._period_s <= 0:
            return None
        return max(0.0, self._began + self._period_s - now) if self.ended else 0.0

    def passed_s(self, now: float) -> float:
        """Seconds since the last pass began."""
        return now - self._began

    def begin(self, files: Iterable[CheckedFile], now: float, *, hurried: bool = False) -> None:
        """Begin a pass over these files, which are in order; or go on with the one that a restart has cut short."""
        if self.ended or hurried:
            self._began, self.behind, self.ended = now, None, False
        self.running, self.hurried = True, hurried
        behind = self.behind
        self._queue = deque(file for file in files if behind is None or (file.kind, file.number) > behind)

    def doubt(self, file: CheckedFile) -> None:
        """Something is wrong with a file: it is checked next."""
        if file not in self._doubted:
            self._doubted.append(file)

    @property
    def doubts(self) -> bool:
        """A file waits to be checked at once, whether there is a pass or not."""
        return bool(self._doubted)

    @property
    def gives_way(self) -> bool:
        """The file that is being checked should wait: one that is doubted comes first."""
        return bool(self._doubted) and self._current is not None and not self._at_once

    def put_back(self) -> None:
        """The file that is being checked is begun anew, after those that are doubted."""
        assert self._current is not None
        self._queue.appendleft(self._current)
        self._current = None

    def put_off(self) -> None:
        """The file that is being checked cannot be read for the moment: others come first."""
        assert self._current is not None
        if self._at_once or not self.running:
            self._doubted.append(self._current)
        else:
            self._queue.append(self._current)
        self._current = None

    def next_file(self) -> CheckedFile | None:
        """The file that is checked next; None: nothing is left, and a pass has come to its end."""
        self._at_once = bool(self._doubted)
        if self._doubted:
            self._current = self._doubted.popleft()
        elif self._queue:
            self._current = self._queue.popleft()
        else:
            self._current = None
            if self.running:
                self.running, self.hurried, self.ended, self.behind = False, False, True, None
        return self._current

    def file_done(self) -> bool:
        """The file was read to its end. Returns whether it was doubted."""
        assert self._current is not None
        if not self._at_once and self.running:
            self.behind = (int(self._current.kind), self._current.number)
        self._current = None
        return self._at_once

    # -- pace ---------------------------------------------------------------------------------------------

    @property
    def left(self) -> tuple[int, int]:
        """Files and bytes of this pass that no check has begun with."""
        return len(self._queue), sum(file.size for file in self._queue)

    def pause_s(self, count: int, left_of_file: int, now: float) -> float:
        """Seconds to wait after ``count`` bytes were read.

        Args:
            left_of_file: about how many bytes of the current file are left.
        """
        least = self.at_limit_s(count)
        if self.hurried or self._at_once or not self.running:
            return least
        ahead = self._began + self._period_s - now
        left = self.left[1] + max(left_of_file, 0)
        return max(least, count * ahead / (left + count)) if ahead > 0 and count else least

    def at_limit_s(self, count: int) -> float:
        """Seconds that reading ``count`` bytes takes at the limit."""
        return count / self._limit if self._limit > 0 else 0.0

    def too_slow(self, now: float) -> bool:
        """Whether the limit does not let this pass end within its period."""
        if not self.running or self._limit <= 0 or self._period_s <= 0:
            return False
        return self.left[1] / self._limit > max(self._began + self._period_s - now, 0.0)
