"""Which entry logs records go to: all into one (:class:`SharedLayout`), or each ledger's into its own
(:class:`~bookkeeper.storage.ledger_logs.ledger_log_layout.LedgerLogLayout`).

Group commit, checkpoints and the engine ask the layout; what is behind it is the same: places, index, files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from bookkeeper.seams import File
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.pending_group import GroupBuffer, PendingGroup
from bookkeeper.storage.shared_log.group_copier import CopyObserver, GroupCopied, GroupCopier


class Copier(Protocol):
    """The way of durable groups into the entry logs; see :class:`GroupCopier`."""

    stuck: bool
    """The oldest durable group could not be copied at the last try."""

    @property
    def busy(self) -> bool:
        """A copy is under way, or waits."""

    def go_on(self) -> None:
        """Copy the oldest durable group, if there is one and no copy is under way."""

    def go_on_here(self, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        """The same on the loop's thread, a turn from now."""

    def failed_already(self) -> None:
        """The journal's worker has tried to copy the oldest durable group, and could not."""

    def has_open(self, log_id: int) -> bool:
        """A group for this log needs no new file."""

    def copy(self, group: PendingGroup) -> GroupCopied:
        """Copy a group on the calling thread; blocks."""


class EntryLogLayout(Protocol):
    """Owned by the loop's thread."""

    # -- for group commit

    copies_with_journal: bool
    """Whether the journal's worker may copy a small group in the same job."""

    def new_group(self, buffer: GroupBuffer, log_id: int, log_offset: int) -> PendingGroup:
        """A group that collects."""

    def next_place(self) -> tuple[int, int]:
        """Log and offset for a new group."""

    def group_closed(self, group: PendingGroup) -> None:
        """A group takes no more records."""

    def copier(self, groups: GroupSequence, observer: CopyObserver) -> Copier:
        """How groups come into the logs; asked for once."""

    def created(self, group: PendingGroup, file: File) -> None:
        """The copier has made a log for a group."""

    # -- for checkpoints

    syncs_names: bool
    """Whether the name of a log is durable as soon as its file is there."""

    def write_out(self, callback: Done) -> None:
        """``callback(None)`` when every group that counts as logged is in the files."""

    def unsynced(self, ends: Mapping[int, int]) -> dict[int, File]:
        """The descriptors to sync, so that everything below these ends of logs is durable. Asked when that is written
        out."""

    def writer_of(self, log_id: int) -> File | None:
        """The descriptor that has written a log; None: it is closed, and everything is synced."""

    def has_writer(self, log_id: int) -> bool:
        """Whether :meth:`writer_of` will know, or the log may be opened to finish it."""

    def synced(self, ends: Mapping[int, int]) -> None:
        """A checkpoint has synced everything below these ends."""

    def finished(self, log_ids: Iterable[int]) -> None:
        """These logs have their map and footer."""

    def doomed(self, dropped: Callable[[int], bool]) -> list[int]:
        """Logs that are not finished, and hold nothing but a ledger that is deleted."""

    def removed(self, log_id: int) -> None:
        """The log is left out of the manifest."""

    def end_all(self) -> None:
        """The disk is being closed: no log takes more records."""

    def close(self, files: list[File]) -> None:
        """Close descriptors, when nobody has them in hand any more."""

    # -- for the engine

    def end_of(self, ledger_id: int) -> None:
        """Somebody says that the ledger is closed."""

    def look(self) -> bool:
        """To be called every few seconds. Returns whether a checkpoint is wanted."""

    def stop(self) -> None:
        """The workers end: nothing is handed to them any more."""

    def open_files(self) -> Iterable[File]:
        """Descriptors that wait to be closed."""


class SharedLayout:
    """All ledgers in one log, in the order in which their records came."""

    copies_with_journal = True
    syncs_names = True

    def __init__(
        self,
        entry_logs: EntryLogs,
        writer: EntryLogWriter,
        workers: StorageWorkers,
        monotonic: Callable[[], float] | None,
    ) -> None:
        self._entry_logs, self._writer, self._workers, self._monotonic = entry_logs, writer, workers, monotonic
        self.new_group = PendingGroup
        self.next_place = entry_logs.next_place

    def group_closed(self, group: PendingGroup) -> None:
        """See :class:`EntryLogLayout`."""
        self._entry_logs.given(group.log_id, group.log_offset + group.size, group.usage)

    def copier(self, groups: GroupSequence, observer: CopyObserver) -> GroupCopier:
        """See :class:`EntryLogLayout`."""
        return GroupCopier(groups, self._writer, self._workers, self._monotonic, observer)

    def created(self, group: PendingGroup, file: File) -> None:
        """See :class:`EntryLogLayout`."""
        self._entry_logs.created(group.log_id, file)

    def write_out(self, callback: Done) -> None:
        """See :class:`EntryLogLayout`: a group counts as logged when it is written."""
        callback(None)

    def unsynced(self, ends: Mapping[int, int]) -> dict[int, File]:
        """See :class:`EntryLogLayout`."""
        files: dict[int, File] = {}
        for log_id in ends:
            file = self._entry_logs.logs[log_id].file
            assert file is not None
            files[log_id] = file
        return files

    def writer_of(self, log_id: int) -> File | None:
        """See :class:`EntryLogLayout`."""
        return self._entry_logs.logs[log_id].file

    def has_writer(self, log_id: int) -> bool:
        """See :class:`EntryLogLayout`."""
        return self._entry_logs.logs[log_id].file is not None

    def synced(self, ends: Mapping[int, int]) -> None:
        """See :class:`EntryLogLayout`."""

    def finished(self, log_ids: Iterable[int]) -> None:
        """See :class:`EntryLogLayout`."""

    def doomed(self, dropped: Callable[[int], bool]) -> list[int]:
        """See :class:`EntryLogLayout`."""
        return []

    def removed(self, log_id: int) -> None:
        """See :class:`EntryLogLayout`."""

    def end_all(self) -> None:
        """See :class:`EntryLogLayout`."""

    def close(self, files: list[File]) -> None:
        """See :class:`EntryLogLayout`: after the reads in progress."""
        reads = self._workers.get("read")
        for file in files:
            reads.submit(file.close, _ignore)

    def end_of(self, ledger_id: int) -> None:
        """See :class:`EntryLogLayout`."""

    def look(self) -> bool:
        """See :class:`EntryLogLayout`."""
        return False

    def stop(self) -> None:
        """See :class:`EntryLogLayout`."""

    def open_files(self) -> Iterable[File]:
        """See :class:`EntryLogLayout`."""
        return ()


def _ignore(_result: object, _error: BaseException | None) -> None:
    pass
