"""The shared layout: all ledgers in one entry log, in the order in which their records came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bookkeeper.seams import File
from bookkeeper.storage.base.results import Done, ignore
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.journal.entry_log_layout import CopyObserver, GroupCopied
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.pending_group import PendingGroup


class GroupCopier:
    """Copies durable groups from memory into the entry log, in order, unsynced.

    No promise depends on it, so the journal need not wait: while a large group is copied the next is made durable. A
    group that cannot be copied for now stays the oldest one, and is tried again by :meth:`go_on`.

    Owned by the loop's thread. The entry log writer belongs to whoever copies: the log's worker while ``busy``, the
    journal's worker while it writes a small group, the loop while neither has one.
    """

    def __init__(
        self,
        groups: GroupSequence,
        logs: EntryLogWriter,
        workers: StorageWorkers,
        monotonic: Callable[[], float] | None,
        observer: CopyObserver,
    ) -> None:
        self._groups, self._logs, self._workers = groups, logs, workers
        self._monotonic, self._observer = monotonic, observer
        self.busy = False
        """A copy is under way."""
        self.stuck = False
        """The last try failed."""

    def go_on(self) -> None:
        """Copy the oldest durable group by the log's worker, if there is one and no copy is under way."""
        group = self._groups.oldest_unlogged
        if self.busy or group is None:
            return
        self.busy, self.stuck = True, False
        self._workers.get("log").submit(lambda: self.copy(group), self._copied)

    def go_on_here(self, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        """Copy it on the loop's thread, a turn from now: the answers leave first. Only when it is the one group."""
        assert not self.busy
        self.busy = True
        call_later(0, self._copy_here)

    def failed_already(self) -> None:
        """The journal's worker has tried to copy the oldest durable group, and could not."""
        self.stuck = True

    def has_open(self, log_id: int) -> bool:
        """Whether this log is the open one, so that a group for it needs no new file. Asked while none is copied."""
        return log_id == self._logs.log_id

    def copy(self, group: PendingGroup) -> GroupCopied:
        """Write the group's records to their place in the entry log. Blocks.

        Raises:
            OSError: no space, no descriptors: it may be repeated. Others are final.
        """
        began = self._monotonic() if self._monotonic is not None else 0.0
        created = None
        if group.records:
            created = self._logs.write(group.log_id, group.data, group.log_offset, group.sequence)
        return GroupCopied(created, self._monotonic() - began if self._monotonic is not None else 0.0)

    def _copy_here(self) -> None:
        group = self._groups.oldest_unlogged
        assert group is not None
        try:
            copied = self.copy(group)
        except Exception as error:  # judged as a worker's
            self._copied(None, error)
        else:
            self._copied(copied, None)

    def _copied(self, copied: GroupCopied | None, error: BaseException | None) -> None:
        self.busy = False
        if copied is None:
            self.stuck = True
            self._observer.copy_failed(error or RuntimeError("the entry log's worker gave no result"))
            return
        self._observer.group_copied(copied)
        self.go_on()


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
