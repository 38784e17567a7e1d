"""Records that are not in the file of their entry log yet, as reads see them.

In the shared layout these are the groups on their way from the journal
(:class:`~bookkeeper.storage.journal.group_sequence.GroupSequence`); with a log per ledger, what the logs keep in memory
(:class:`LogMemory`).
"""

from __future__ import annotations

from typing import Protocol

from bookkeeper.seams import Buffer, File
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.journal.group_sequence import NOWHERE
from bookkeeper.storage.ledger_logs.ledger_logs import LedgerLogs, MemoryPiece


class RecordsInMemory(Protocol):
    """Consecutive records of one log."""

    @property
    def name(self) -> str:
        """Which they are, for people."""

    def record_from(self, offset: int) -> Buffer:
        """The record at ``offset`` of the log, and perhaps more behind it. Valid until the loop's next turn."""

    def read(self, offset: int, size: int) -> bytes:
        """The bytes from ``offset`` of the log on, at most ``size``."""


class UnwrittenRecords(Protocol):
    """What is in memory, by places."""

    @property
    def logged_below(self) -> int:
        """Records at places below this are in the files."""

    @property
    def cached_below(self) -> int:
        """Records at places below this are read from :class:`CachedSource`."""

    def holding(self, found: int) -> RecordsInMemory | None:
        """The memory that holds the record at this place; None: a file does."""


class CachedSource(Protocol):
    """Where records of one log are read without waiting: its file, as a rule."""

    def pread_cached_into(self, buffer: Buffer, offset: int) -> int | None:
        """Fill ``buffer`` from ``offset`` of the log on; how much was there; None: it would wait."""


class LogMemory:
    """What the logs of ledgers keep in memory. Runs on the loop's thread."""

    logged_below = 0
    """Of no place is it known without a look at its log."""
    cached_below = NOWHERE
    """Every record, because a source reads the memory, too."""

    def __init__(self, logs: LedgerLogs, entry_logs: EntryLogs) -> None:
        self._logs, self._entry_logs = logs, entry_logs

    def holding(self, found: int) -> MemoryPiece | None:
        """See :class:`UnwrittenRecords`."""
        return self._logs.holding(found)

    def source_of(self, log_id: int) -> CachedSource:
        """Where records of this log are read.

        Raises:
            CorruptionError: the log is missing.
            OSError: the log cannot be opened.
        """
        log = self._logs.log(log_id)
        if log is None:
            return self._entry_logs.file(log_id)
        file = self._entry_logs.file(log_id) if log.made else None
        return _LogSource(log.writing, log.tail, file)


class _LogSource:
    def __init__(self, writing: MemoryPiece | None, tail: MemoryPiece, file: File | None) -> None:
        self._writing, self._tail, self._file = writing, tail, file

    def pread_cached_into(self, buffer: Buffer, offset: int) -> int | None:
        for piece in (self._tail, self._writing):
            if piece is not None and offset >= piece.begin:
                data = piece.read(offset, len(buffer))
                memoryview(buffer)[: len(data)] = data
                return len(data)
        assert self._file is not None, "bytes below the memory are in the file"
        return self._file.pread_cached_into(buffer, offset)
