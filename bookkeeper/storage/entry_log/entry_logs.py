"""The entry logs of a directory: how far each is filled, and with which ledgers. Used on the loop's thread.

Every field of an :class:`EntryLogState` is written by :class:`EntryLogs` alone. A log goes through these steps:

    next_place, given    groups get their places in the log that is being filled
    begin, end_filling   the same for a log of its own for each ledger: several are filled at a time
    created              its file exists; the descriptor that wrote it is kept until its last sync
    take_dirty           a checkpoint syncs it, and notes its end and its ledgers
    mark_finished        a checkpoint has written its map and footer; nothing is added any more
    removed              a checkpoint has removed it from the manifest

The log that compaction writes has an id of its own (``reserve``). It is here once it is whole (``written_aside``);
then a checkpoint finishes it like any other.

A start adds the logs that the manifest names (``add``), and corrects them by what it reads in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bookkeeper.errors import CorruptionError, check
from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.base.manifest import ManifestLog
from bookkeeper.storage.entry_log.entry_log_file import Usage, log_name
from bookkeeper.storage.index.entry_index import LOG_SHIFT

_LAST_LOG = 2 ** (63 - LOG_SHIFT) - 1
_SHARED_IDS = 2**20
"""The last ids are for logs of many ledgers: a bookie runs out of others first."""


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
    remembered: bool = False
    """Whether ``usage`` stays, also in the manifest, when it is finished: it is one ledger's log, and nobody has to
    open a file for each ledger to learn whose it is."""

    def entry(self) -> ManifestLog:
        """The log as the manifest records it."""
        kept = self.remembered or not self.finished
        return ManifestLog(self.end, self.finished, _copy(self.usage) if kept else {})


class EntryLogs:
    """All logs of a directory, and the one that is being filled."""

    def __init__(self, disk: Disk, directory: str, limit: int, next_log: int, reading_max: int = 0) -> None:
        """
        Args:
            limit: after so many bytes of a log a new one is begun.
            next_log: the id of the next log, greater than every id that was used.
            reading_max: descriptors that are kept open for nothing but reading; 0: all.
        """
        self._disk, self._directory, self._limit = disk, directory, limit
        self._next_log, self._current = next_log, 0
        self._logs: dict[int, EntryLogState] = {}
        self._filling: set[int] = set()
        """Logs of single ledgers that take records."""
        self._unfinished: dict[int, EntryLogState] = {}
        self._reading_max = reading_max
        self._reading: dict[int, None] = {}
        """Logs whose descriptors only read, the first opened first."""
        self._close: Callable[[list[File]], None] | None = None

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
            self._reading[log_id] = None
            self._limit_reading()
        return log.file

    def close_by(self, close: Callable[[list[File]], None]) -> None:
        """Who closes descriptors that others may have in hand. Until it is told nothing is closed here."""
        self._close = close

    def _limit_reading(self) -> None:
        closing: list[File] = []
        while 0 < self._reading_max < len(self._reading) and self._close is not None:
            log = self._logs.get(oldest := next(iter(self._reading)))
            del self._reading[oldest]
            if log is not None and log.file is not None:
                closing.append(log.file)
                log.file = None
        if closing and self._close is not None:
            self._close(closing)

    def exchange_file(self, log_id: int, file: File | None) -> File | None:
        """The log has another descriptor from now on, or none; the one before, to close."""
        if (log := self._logs.get(log_id)) is None:
            return None
        self._reading.pop(log_id, None)
        before, log.file = log.file, file
        return before

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
            self._begun(self._current)
        return self._current, self._logs[self._current].end

    def begin(self, shared: bool) -> int | None:
        """A new log, which takes records until :meth:`end_filling`; None: there are too few ids left for logs of single
        ledgers."""
        if not shared and self._next_log > _LAST_LOG - _SHARED_IDS:
            return None
        check(self._next_log <= _LAST_LOG, "K10", "there are no log ids left")
        log_id, self._next_log = self._next_log, self._next_log + 1
        self._filling.add(log_id)
        self._begun(log_id, EntryLogState(remembered=not shared))
        return log_id

    def end_filling(self, log_id: int) -> None:
        """A log of :meth:`begin` takes no more records."""
        self._filling.discard(log_id)

    def _begun(self, log_id: int, log: EntryLogState | None = None) -> None:
        self._logs[log_id] = self._unfinished[log_id] = log if log is not None else EntryLogState()

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
        self._begun(log_id, EntryLogState(end, file, usage, written=True, dirty=True))

    # -- for checkpoints ----------------------------------------------------------------------------------

    def take_dirty(self) -> list[int]:
        """The logs that the next checkpoint must sync. They count as clean from now on."""
        taken = [log_id for log_id, log in self._unfinished.items() if log.dirty and log.end > BLOCK]
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
            for log_id, log in self._unfinished.items()
            if log_id != self._current and log_id not in self._filling and log.written
        }

    def mark_finished(self, log_ids: Iterable[int]) -> None:
        """These logs have their map and footer."""
        for log_id in log_ids:
            if (log := self._unfinished.pop(log_id, None)) is not None:
                log.finished, log.usage = True, log.usage if log.remembered else {}
                if log.file is not None:
                    self._reading[log_id] = None

    def removed(self, log_id: int) -> File | None:
        """No manifest names the log any more. Returns its descriptor, to close."""
        self._unfinished.pop(log_id, None)
        self._reading.pop(log_id, None)
        return self._logs.pop(log_id).file

    # -- for the start ------------------------------------------------------------------------------------

    def add(self, log_id: int, entry: ManifestLog, file: File | None, *, of_one: bool = False) -> None:
        """Add a log that the manifest names.

        Args:
            of_one: it is remembered whose it is, if it is one ledger's.
        """
        log = self._logs[log_id] = EntryLogState(entry.end, file, _copy(entry.usage), entry.finished)
        log.remembered = bool(entry.usage) if entry.finished else of_one and len(entry.usage) == 1
        if not entry.finished:
            self._unfinished[log_id] = log
        elif file is not None:
            self._reading[log_id] = None

    def recount(self, log_id: int, end: int, usage: Usage) -> None:
        """An unfinished log was read: its records end at ``end`` and belong to the ledgers of ``usage``."""
        log = self._logs[log_id]
        assert not log.finished
        log.end, log.usage = end, usage

    def extend(self, log_id: int, file: File | None, end: int, usage: Usage) -> None:
        """Records were found behind the end of a log, or in a log that no manifest names.

        Its records end at ``end``; ``usage`` counts the new ones. The log must be synced; ``file`` can write it.
        Without a file it is synced and closed.
        """
        if log_id not in self._logs:
            self._begun(log_id)
        log = self._logs[log_id]
        if log.file is not None and log.file is not file:
            log.file.close()
        log.file, log.dirty, log.end = file, file is not None and (log.dirty or end > log.end), end
        _count(log.usage, usage)

    def covered(self, entries: Mapping[int, ManifestLog]) -> None:
        """The start's checkpoint is complete; ``entries`` is what its manifest says."""
        for log_id, entry in entries.items():
            log = self._logs[log_id]
            log.finished, log.dirty = entry.finished, False
            if entry.finished:
                log.usage = entry.usage
                self._unfinished.pop(log_id, None)
                if log.file is not None:
                    self._reading[log_id] = None


def _copy(usage: Usage) -> Usage:
    return {ledger: list(row) for ledger, row in usage.items()}


def _count(usage: Usage, more: Usage) -> None:
    for ledger_id, (size, records) in more.items():
        row = usage.setdefault(ledger_id, [0, 0])
        row[0] += size
        row[1] += records
