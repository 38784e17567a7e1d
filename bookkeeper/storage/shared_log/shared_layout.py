"""The shared layout: all ledgers in one entry log, in the order in which their records came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bookkeeper.seams import File
from bookkeeper.storage.base.results import Done, ignore
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.journal.entry_log_layout import CopyObserver
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.pending_group import PendingGroup
from bookkeeper.storage.shared_log.group_copier import GroupCopier


class SharedLayout:
    """See :class:`~bookkeeper.storage.journal.entry_log_layout.EntryLogLayout`. Owned by the loop's thread."""

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

    def dead_logs(self, dropped: Callable[[int], bool]) -> list[int]:
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
            reads.submit(file.close, ignore)

    def ledger_closed(self, ledger_id: int) -> None:
        """See :class:`EntryLogLayout`."""

    def end_idle_logs(self) -> bool:
        """See :class:`EntryLogLayout`."""
        return False

    def stop(self) -> None:
        """See :class:`EntryLogLayout`."""

    def open_files(self) -> Iterable[File]:
        """See :class:`EntryLogLayout`."""
        return ()
