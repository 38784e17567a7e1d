"""Groups that are durable and answered, on their way from the journal to the entry log, in order.

Nobody waits here, so the journal need not either: while one group is copied to the entry log the next is made durable.
Until a group has arrived it is read from memory, and no checkpoint covers it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bookkeeper.seams import File, Worker
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.journal.group_writer import PendingGroup


@dataclass(slots=True)
class LoggedGroup:
    """What a write to the entry log reports."""

    created: File | None
    seconds: float
    """What it took; 0 without a clock."""


@dataclass(slots=True)
class EntryLogQueue:
    """Owned by the loop's thread. ``logs`` is the worker's while ``busy``, and nobody else's while there are groups."""

    logs: EntryLogWriter
    worker: Callable[[], Worker]
    monotonic: Callable[[], float] | None
    logged: Callable[[PendingGroup, LoggedGroup], None]
    """The oldest group has arrived."""
    trouble: Callable[[BaseException], None]
    """It could not be written; the lane is :attr:`stuck` with it until :meth:`go_on`."""
    groups: deque[PendingGroup] = field(default_factory=deque)
    """Oldest first."""
    busy: bool = False
    stuck: bool = False

    def send(self, group: PendingGroup) -> None:
        """By the worker."""
        self.groups.append(group)
        if not self.stuck:
            self.go_on()

    def keep(self, group: PendingGroup) -> None:
        """A try to write it has failed already. Only when the lane is empty."""
        assert not self.groups
        self.groups.append(group)
        self.stuck = True

    def send_here(self, group: PendingGroup, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        """On the loop's thread, a turn from now: the answers leave first. Only when the lane is empty."""
        assert not self.groups
        self.groups.append(group)
        self.busy = True
        call_later(0, self._here)

    def go_on(self) -> None:
        """Write the oldest group, if there is one and none is under way."""
        if self.busy or not self.groups:
            return
        group = self.groups[0]
        self.busy, self.stuck = True, False
        self.worker().submit(lambda: self.write(group), self._written)

    def write(self, group: PendingGroup) -> LoggedGroup:
        """Copy its records to its place in the entry log, unsynced.

        Raises:
            OSError: ENOSPC and the like: may be repeated. Others: final.
        """
        begun = self.monotonic() if self.monotonic is not None else 0.0
        created = self.logs.write(group.log_id, group.data, group.log_offset) if group.records else None
        return LoggedGroup(created, self.monotonic() - begun if self.monotonic is not None else 0.0)

    def _here(self) -> None:
        try:
            logged = self.write(self.groups[0])
        except Exception as error:  # judged as a worker's
            self._written(None, error)
        else:
            self._written(logged, None)

    def _written(self, logged: LoggedGroup | None, error: BaseException | None) -> None:
        self.busy = False
        if logged is None:
            self.stuck = True
            self.trouble(error or RuntimeError("the entry log's worker gave no result"))
            return
        self.logged(self.groups.popleft(), logged)
        self.go_on()
