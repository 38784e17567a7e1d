"""The entry logs of a directory: how far each is filled, and with which ledgers. Used on the loop's thread.

Every field of an :class:`EntryLogState` is written by :class:`EntryLogs` alone. A log goes through these steps:

    next_place, given    groups get their places in the log that is being filled
    created              its file exists; the descriptor that wrote it is kept until its last sync
    take_dirty           a checkpoint syncs it, and notes its end and its ledgers
    mark_finished        a checkpoint has written its map and footer; nothing is added any more
    removed              a checkpoint has removed it from the manifest

The log that compaction writes has an id of its own (``reserve``). It is here once it is whole (``written_aside``);
then a checkpoint finishes it like any other.

A start adds the logs that the manifest names (``add``), and corrects them by what it reads in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    """One entry log. Only :class:`EntryLogs` writes its fields."""

    end: int = BLOCK
    """Groups have all bytes below this offset."""
    file: File | None = None
    """The descriptor that wrote it, kept until its last sync (K5), or one that only reads."""
    usage: Usage = field(default_factory=dict)
    """The ledgers in it, until it is finished. Then its map has them."""
    finished: bool = False
    """Whether it has its map and footer. Then nothing is added any more."""
    written: bool = False
    """Whether groups got places in it since the start, so that its descriptor can write."""
    dirty: bool = False
    """Whether groups got places in it since the last checkpoint."""

    def entry(self) -> ManifestLog:
        """The log as the manifest records it."""
        usage = {} if self.finished else {ledger: list(row) for ledger, row in self.usage.items()}
        return ManifestLog(self.end, self.finished, usage)


class EntryLogs:
    """All logs of a directory, and the one that is being filled."""

    def __init__(self, disk: Disk, directory: str, limit: int, next_log: int) -> None:
        """
        Args:
            limit: after so many bytes of a log a new one is begun.
            next_log: the id of the next log, greater than every id that was used.
        """
        self._disk, self._directory, self._limit = disk, directory, limit
        self._next_log, self._current = next_log, 0
        self._logs: dict[int, EntryLogState] = {}

    # -- reading ------------------------------------------------------------------------------------------

    @property
    def logs(self) -> Mapping[int, EntryLogState]:
        """Every log by its id. The caller must not change it."""
        return self._logs

    @property
    def next_log(self) -> int:
        """The id that the next new log gets."""
        return self._next_log

    @property
    def current(self) -> int:
        """The log that is being filled; 0 if there is none."""
        return self._current

    def file(self, log_id: int) -> File:
        """The log's file, for reading. It is opened if necessary.

        Raises:
            CorruptionError: the log is missing.
            OSError: the log cannot be opened.
        """
        if (log := self._logs.get(log_id)) is None:
            raise CorruptionError(f"{self._directory}/{log_name(log_id)} is missing")
        if log.file is None:
            log.file = self._disk.open(f"{self._directory}/{log_name(log_id)}", write=False)
        return log.file

    def open_files(self) -> Iterator[File]:
        """Every descriptor that is open."""
        return (log.file for log in self._logs.values() if log.file is not None)

    # -- while groups are collected -----------------------------------------------------------------------

    def next_place(self) -> tuple[int, int]:
        """Log and offset for a new group. If the log is full, a new one is begun."""
        if not self._current or self._logs[self._current].end >= self._limit:
            check(self._next_log <= _LAST_LOG, "K10", "there are no log ids left")
            self._current = self._next_log
            self._next_log += 1
            self._logs[self._current] = EntryLogState()
        return self._current, self._logs[self._current].end

    def given(self, log_id: int, end: int, usage: Usage) -> None:
        """A group was closed. Its records lie below ``end`` and belong to the ledgers of ``usage``."""
        log = self._logs[log_id]
        log.end, log.dirty, log.written = end, True, True
        _count(log.usage, usage)

    def created(self, log_id: int, file: File) -> None:
        """The log's file exists; ``file`` is the descriptor that wrote it."""
        self._logs[log_id].file = file

    def leave_current(self) -> None:
        """Make the next group begin a new log."""
        self._current = 0

    # -- a log that is written aside ----------------------------------------------------------------------

    def reserve(self) -> int:
        """The id of a log that is written aside. A start after a crash takes such a log for left over only if a
        checkpoint has covered the reservation: make one before anything is written."""
        check(self._next_log <= _LAST_LOG, "K10", "there are no log ids left")
        self._next_log += 1
        return self._next_log - 1

    def written_aside(self, log_id: int, file: File, end: int, usage: Usage) -> None:
        """A log with a reserved id is whole: its records lie below ``end`` and belong to the ledgers of ``usage``."""
        self._logs[log_id] = EntryLogState(end, file, usage, written=True, dirty=True)

    # -- for checkpoints ----------------------------------------------------------------------------------

    def take_dirty(self) -> list[int]:
        """The logs that the next checkpoint must sync. They count as clean from now on."""
        taken = [log_id for log_id, log in self._logs.items() if log.dirty and log.end > BLOCK]
        for log_id in taken:
            self._logs[log_id].dirty = False
        return taken

    def give_back_dirty(self, taken: Iterable[int]) -> None:
        """The checkpoint that took these logs has failed: the next one must sync them."""
        for log_id in taken:
            self._logs[log_id].dirty = True

    def entries(self) -> dict[int, ManifestLog]:
        """The logs as the manifest records them, without empty ones."""
        return {log_id: log.entry() for log_id, log in self._logs.items() if log.end > BLOCK}

    def full(self) -> dict[int, int]:
        """The full logs that can be finished, and where their records end."""
        return {
            log_id: log.end
            for log_id, log in self._logs.items()
            if log_id != self._current and not log.finished and log.written
        }

    def mark_finished(self, log_ids: Iterable[int]) -> None:
        """These logs have their map and footer."""
        for log_id in log_ids:
            if not (log := self._logs[log_id]).finished:
                log.finished, log.usage = True, {}

    def removed(self, log_id: int) -> File | None:
        """No manifest names the log any more. Returns its descriptor, to close."""
        return self._logs.pop(log_id).file

    # -- for the start ------------------------------------------------------------------------------------

    def add(self, log_id: int, entry: ManifestLog, file: File) -> None:
        """Add a log that the manifest names."""
        usage = {ledger: list(row) for ledger, row in entry.usage.items()}
        self._logs[log_id] = EntryLogState(entry.end, file, usage, entry.finished)

    def recount(self, log_id: int, end: int, usage: Usage) -> None:
        """An unfinished log was read: its records end at ``end`` and belong to the ledgers of ``usage``."""
        log = self._logs[log_id]
        assert not log.finished
        log.end, log.usage = end, usage

    def extend(self, log_id: int, file: File, end: int, usage: Usage) -> None:
        """Records were found behind the end of a log, or in a log that no manifest names.

        Its records end at ``end``; ``usage`` counts the new ones. The log must be synced; ``file`` can write it.
        """
        log = self._logs.setdefault(log_id, EntryLogState())
        if log.file is not None and log.file is not file:
            log.file.close()
        log.file, log.dirty, log.end = file, log.dirty or end > log.end, end
        _count(log.usage, usage)

    def covered(self, entries: Mapping[int, ManifestLog]) -> None:
        """The start's checkpoint is complete; ``entries`` is what its manifest says."""
        for log_id, entry in entries.items():
            log = self._logs[log_id]
            log.finished, log.dirty = entry.finished, False


def _count(usage: Usage, more: Usage) -> None:
    for ledger_id, (size, records) in more.items():
        row = usage.setdefault(ledger_id, [0, 0])
        row[0] += size
        row[1] += records
