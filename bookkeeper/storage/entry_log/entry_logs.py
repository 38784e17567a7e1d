"""The entry logs as the loop's thread sees them: who lies where, how far they are filled, whose bytes they hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from bookkeeper.errors import CorruptionError, check
from bookkeeper.seams import Disk, File
from bookkeeper.storage.checkpoint.manifest import ManifestLog
from bookkeeper.storage.durable_file import BLOCK
from bookkeeper.storage.entry_log.entry_log_file import Usage, log_name
from bookkeeper.storage.index.entry_index import LOG_SHIFT

_LAST_LOG = 2 ** (63 - LOG_SHIFT) - 1


@dataclass(slots=True)
class EntryLogState:
    """One entry log."""

    end: int = BLOCK
    """Everything below is given out to groups."""
    file: File | None = None
    """The descriptor that wrote it, kept to its last sync (K5), or one that only reads."""
    usage: Usage = field(default_factory=dict)
    """Until it is finished."""
    finished: bool = False
    written: bool = False
    """Given out to in this life: its descriptor writes."""
    dirty: bool = False
    """Given out to since the last checkpoint."""

    def count(self, usage: Usage) -> None:
        for ledger_id, (size, records) in usage.items():
            row = self.usage.setdefault(ledger_id, [0, 0])
            row[0] += size
            row[1] += records

    def entry(self) -> ManifestLog:
        """As the manifest is to know it."""
        usage = {} if self.finished else {ledger: list(row) for ledger, row in self.usage.items()}
        return ManifestLog(self.end, self.finished, usage)


class EntryLogs:
    """All logs of a directory, and the cursor of the one that is being filled."""

    def __init__(self, disk: Disk, directory: str, limit: int, next_log: int) -> None:
        self._disk, self._directory, self._limit = disk, directory, limit
        self.next_log = next_log
        self.logs: dict[int, EntryLogState] = {}
        self.current = 0
        """The log being filled; 0 = none yet."""

    def next_place(self) -> tuple[int, int]:
        """Log and offset for a new group; a full log is left for a new one."""
        if not self.current or self.logs[self.current].end >= self._limit:
            check(self.next_log <= _LAST_LOG, "K10", "no log ids left")
            self.current = self.next_log
            self.next_log += 1
            self.logs[self.current] = EntryLogState()
        return self.current, self.logs[self.current].end

    def given(self, log_id: int, end: int, usage: Usage) -> None:
        """A group was closed: its records lie below ``end``."""
        log = self.logs[log_id]
        log.end, log.dirty, log.written = end, True, True
        log.count(usage)

    def file(self, log_id: int) -> File:
        """To read from; opened if need be.

        Raises:
            CorruptionError: there is no such log.
            OSError
        """
        if (log := self.logs.get(log_id)) is None:
            raise CorruptionError(f"{self._directory}/{log_name(log_id)} is missing")
        if log.file is None:
            log.file = self._disk.open(f"{self._directory}/{log_name(log_id)}", write=False)
        return log.file
