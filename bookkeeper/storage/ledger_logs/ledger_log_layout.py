"""The shell of a log per ledger: takes durable groups into the memory of their logs, and has that written.

It stands in for :class:`~bookkeeper.storage.shared_log.shared_layout.GroupCopier`: a group counts as logged when its
records may be written, which is at once unless the buffer is full. Before a checkpoint everything is written
(:meth:`LedgerLogLayout.write_out`).

A descriptor is closed when nobody can have it in hand any more: behind the jobs that the workers have got by then.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from bookkeeper.codec import record_places
from bookkeeper.errors import BookieFailedError, in_words
from bookkeeper.seams import Buffer, File
from bookkeeper.storage.base.durable_file import TRANSIENT
from bookkeeper.storage.base.results import Done, ignore
from bookkeeper.storage.base.workers import StorageWorkers, WorkerName
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.journal.entry_log_layout import CopyObserver, GroupCopied
from bookkeeper.storage.journal.group_sequence import GroupSequence
from bookkeeper.storage.journal.journal_format import GROUP_HEADER
from bookkeeper.storage.journal.pending_group import GroupBuffer, PendingGroup
from bookkeeper.storage.ledger_logs.ledger_logs import SHARED, GroupPart, LedgerLog, LedgerLogs, WritePlan
from bookkeeper.storage.ledger_logs.log_writes import LogWriteResult, LogWrites


class LedgerGroup(PendingGroup):
    """A group whose places are in many logs: in the journal it is one, behind it each ledger has its own. Its records
    are in the memory of their logs from the beginning, and are read there."""

    __slots__ = ("_logs", "parts")

    def __init__(self, buffer: GroupBuffer, logs: LedgerLogs) -> None:
        super().__init__(buffer, 0, 0)
        self._logs = logs
        self.parts: dict[int, GroupPart] = {}
        """What it has in each log, by the log's id."""

    def add_run(self, ledger_id: int, records: Buffer, begin: int, ends: array[int], i0: int, i1: int) -> array[int]:
        """See :class:`PendingGroup`."""
        end, count = ends[i1 - 1], i1 - i0
        size = end - begin
        log = self._logs.take(ledger_id, memoryview(records)[begin:end])
        self._take(records, begin, end)
        self.records += count
        base = self._note(log, ledger_id, size, count)
        return record_places(ends, i0, i1, begin, base - begin)

    def add_record(self, ledger_id: int, data: bytes, *, outlives: bool = False) -> int:
        """See :class:`PendingGroup`."""
        log = self._logs.take(SHARED if outlives else ledger_id, data)
        if outlives:
            self._logs.end_of(ledger_id)
        self.buffer.view[GROUP_HEADER + self.size : GROUP_HEADER + self.size + len(data)] = data
        self.size += len(data)
        self.records += 1
        return self._note(log, ledger_id, len(data), 1)

    def _note(self, log: LedgerLog, ledger_id: int, size: int, count: int) -> int:
        """Count records at the end of a log. Returns the place of the first."""
        end = log.end
        part = self.parts.get(log.log_id)
        if part is None:
            self.parts[log.log_id] = GroupPart(end, {ledger_id: [size, count]})
        else:
            part.end = end
            row = part.usage.setdefault(ledger_id, [0, 0])
            row[0] += size
            row[1] += count
        return place(log.log_id, end - size)

    def holds(self, log_id: int, offset: int) -> bool:
        """See :class:`PendingGroup`: the memory of the log holds its records."""
        return False

    def follows(self, before: PendingGroup) -> bool:
        """See :class:`PendingGroup`."""
        if not isinstance(before, LedgerGroup):
            return False
        return all(part.end <= self.parts[log_id].end for log_id, part in before.parts.items() if log_id in self.parts)


log = logging.getLogger(__name__)

_IN_HAND: Final[tuple[WorkerName, ...]] = ("log", "checkpoint", "read")
"""The workers that may have a log's descriptor in hand; the last one closes it."""

FINISH_WITHIN_S: Final = 30.0
"""Logs that have ended are finished by a checkpoint within so many seconds."""


class LedgerLogLayout:
    """Owned by the loop's thread."""

    copies_with_journal = False
    syncs_names = False

    def __init__(
        self,
        logs: LedgerLogs,
        writes: LogWrites,
        entry_logs: EntryLogs,
        workers: StorageWorkers,
        monotonic: Callable[[], float],
        no_space: Callable[[OSError], bool],
        fail: Callable[[BaseException], None],
    ) -> None:
        """
        Args:
            no_space: told of a write that found no space. True: some was freed, try again at once.
            fail: told of an error after which nothing may be acknowledged any more.
        """
        self.logs, self._writes, self._entry_logs, self._workers = logs, writes, entry_logs, workers
        self._monotonic, self._no_space, self._fail = monotonic, no_space, fail
        self._groups: GroupSequence | None = None
        self._observer: CopyObserver | None = None
        self._waits = False
        """A group waits for its turn, or until there is room for it."""
        self.stuck = False
        """That failed at the last try."""
        self._files: dict[int, File] = {}
        """The descriptors that write logs."""
        self._closing: list[File] = []
        self._after_this: list[Done] = []
        """Called when what is being written is written."""
        self._after_next: list[Done] = []
        self._failed: Exception | None = None
        """Why the last write failed, if it did."""
        self._ended_since: float | None = None
        self._stopped = self._said = False

    # -- what group commit asks ---------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """A group waits for its turn or for room, or the worker writes."""
        return self._waits or self.logs.writing

    def new_group(self, buffer: GroupBuffer, _log_id: int, _offset: int) -> LedgerGroup:
        """A group that collects."""
        return LedgerGroup(buffer, self.logs)

    def next_place(self) -> tuple[int, int]:
        """A group has no place of its own in the entry logs."""
        return 0, 0

    def group_closed(self, group: PendingGroup) -> None:
        """A group takes no more records."""
        assert isinstance(group, LedgerGroup)
        for log_id, part in group.parts.items():
            self._entry_logs.given(log_id, part.end, part.usage)

    def copier(self, groups: GroupSequence, observer: CopyObserver) -> LedgerLogLayout:
        """See :class:`~bookkeeper.storage.journal.entry_log_layout.EntryLogLayout`."""
        self._groups, self._observer = groups, observer
        return self

    def created(self, _group: PendingGroup, _file: File) -> None:
        """Files are reported by those who make them."""

    def go_on(self) -> None:
        """Take in the oldest durable groups, as many as there is room for."""
        assert self._groups is not None
        while not self._waits and (group := self._groups.oldest_unlogged) is not None:
            self.stuck = False
            self._write_if_due()
            if self.logs.due:
                self._waits = True  # until something is written
                return
            self._take(group)

    def go_on_here(self, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        """The same a turn from now: the answers leave first."""
        self._waits = True
        call_later(0, self._turn_over)

    def _turn_over(self) -> None:
        self._waits = False
        self.go_on()

    def failed_already(self) -> None:
        """No other worker writes logs."""

    def has_open(self, log_id: int) -> bool:
        """A group needs no new file to be taken in."""
        return True

    def copy(self, group: PendingGroup) -> GroupCopied:
        """No other worker writes logs."""
        raise NotImplementedError

    def _take(self, group: PendingGroup) -> None:
        assert isinstance(group, LedgerGroup) and self._observer is not None
        self.logs.made_durable(group.parts, self._monotonic())
        self._observer.group_copied(GroupCopied(None, 0.0))
        self._write_if_due()

    # -- writing ------------------------------------------------------------------------------------------

    def _write_if_due(self) -> None:
        if self.logs.due and not self.logs.writing:
            self._write()

    def _write(self) -> None:
        plan = self.logs.plan()
        self._after_this, self._after_next = self._after_this + self._after_next, []
        names = [each.log_id for each in plan.writes] + [log_id for log_id, _ in plan.give_way]
        files = {log_id: self._files[log_id] for log_id in names if log_id in self._files}
        self._workers.get("log").submit(
            lambda: self._writes.carry_out(plan, files), lambda done, error: self._wrote(plan, done, error)
        )

    def _wrote(self, plan: WritePlan, done: LogWriteResult | None, error: BaseException | None) -> None:
        if done is None:  # the job itself cannot fail, unless by mistake
            why = "no error was told" if error is None else in_words(error)
            done = LogWriteResult(error=BookieFailedError(f"the entry log's worker gave no result: {why}"))
        if self._stopped:
            return _close_all(file for _, file in done.written)
        self.close(self._take_over(plan, done))
        self._failed = done.error
        callbacks, self._after_this = self._after_this, []
        if done.error is not None:
            callbacks, self._after_next = callbacks + self._after_next, []
        return self._report(done.error, callbacks)

    def _take_over(self, plan: WritePlan, done: LogWriteResult) -> list[File]:
        """A plan is carried out, as far as ``done`` says. Returns the descriptors that are needed no more."""
        closing: list[File] = []
        for write, file in done.written:
            if not self.logs.wrote(write):
                closing.append(file)  # its ledger was deleted meanwhile
            elif write.keep:
                self._opened(write.log_id, file, closing)
            else:
                self._let_go(write.log_id, file, closing)
        for write in plan.writes[len(done.written) :]:
            self.logs.not_written(write)
        for log_id, _ in plan.give_way:
            if log_id not in done.gave_way:
                self.logs.did_not_give_way(log_id)
            else:
                self.logs.gave_way(log_id)
                if (kept := self._files.get(log_id)) is not None:
                    self._let_go(log_id, kept, closing)
        self.logs.ended_writing()
        return closing

    def _opened(self, log_id: int, file: File, closing: list[File]) -> None:
        """The descriptor writes the log, and reads it."""
        if self._files.get(log_id) is not file:
            self._files[log_id] = file
            if (reading := self._entry_logs.exchange_file(log_id, file)) is not None:
                closing.append(reading)

    def _let_go(self, log_id: int, file: File, closing: list[File]) -> None:
        """The descriptor has written and synced, and is needed no more."""
        if self._files.pop(log_id, None) is not None:
            self._entry_logs.exchange_file(log_id, None)
        closing.append(file)

    def _report(self, error: Exception | None, callbacks: list[Done]) -> None:
        """What was to be written is written, or could not be."""
        waits = self._waits and self.logs.due  # a group waits for room, and there is none
        if error is not None and (not isinstance(error, OSError) or error.errno not in TRANSIENT):
            self._fail(error)
        elif error is not None and not callbacks and not waits:
            if isinstance(error, OSError) and self._no_space(error):
                self._write()
            return
        for callback in callbacks:
            callback(error)
        if error is None and self._after_next and not self.logs.writing:
            self._write_out()
        if not self._waits:
            return
        self._waits = False
        if error is None:
            self.go_on()
        elif not self.logs.writing:  # else whoever was called has freed some space
            assert self._observer is not None
            self.stuck = True
            self._observer.copy_failed(error)
        else:
            self._waits = True

    def write_out(self, callback: Done) -> None:
        """``callback(None)`` when everything that may be written now is written."""
        if not self.logs.writable and not self.logs.writing:
            return callback(None)
        self._after_next.append(callback)
        if not self.logs.writing:
            self._write_out()
        return None

    def _write_out(self) -> None:
        if self.logs.writable:
            return self._write()
        callbacks, self._after_next = self._after_next, []
        for callback in callbacks:
            callback(None)
        return None

    # -- checkpoints --------------------------------------------------------------------------------------

    def unsynced(self, ends: Mapping[int, int]) -> dict[int, File]:
        """The descriptors to sync, so that everything below these ends of logs is durable."""
        files = {log_id: self._files[log_id] for log_id in self.logs.must_sync(ends)}
        for log_id in ends:
            if self.logs.log(log_id) is None:  # a compaction has written it
                file = self._entry_logs.logs[log_id].file
                assert file is not None
                files[log_id] = file
        return files

    def writer_of(self, log_id: int) -> File | None:
        """The descriptor that writes a log; None: it is closed, and everything is synced."""
        return self._files.get(log_id) if self.logs.log(log_id) is not None else self._entry_logs.logs[log_id].file

    def has_writer(self, log_id: int) -> bool:
        """A log that is written out can be opened to finish it."""
        return True

    def synced(self, ends: Mapping[int, int]) -> None:
        """A checkpoint has synced everything below these ends."""
        for log_id, end in ends.items():
            self.logs.was_synced(log_id, end)

    def finished(self, log_ids: Iterable[int]) -> None:
        """These logs have their map and footer."""
        closing: list[File] = []
        for log_id in self.logs.finished(log_ids):
            if (file := self._files.get(log_id)) is not None:
                self._let_go(log_id, file, closing)
        self.close(closing)

    def removed(self, log_id: int) -> None:
        """The log is left out of the manifest; its descriptor is somebody else's to :meth:`close`."""
        self.logs.removed(log_id)
        self._files.pop(log_id, None)

    def dead_logs(self, dropped: Callable[[int], bool]) -> list[int]:
        """Logs that are not finished, and whose ledger is deleted."""
        return self.logs.ended_of(dropped)

    def end_all(self) -> None:
        """The disk is being closed: no log takes more records."""
        self.logs.end_all()

    # -- logs that end ------------------------------------------------------------------------------------

    def ledger_closed(self, ledger_id: int) -> None:
        """Advice: the ledger is closed."""
        self.logs.end_of(ledger_id)

    def end_idle_logs(self) -> bool:
        """To be called every few seconds: ends idle logs, and repeats a write that failed.

        Returns:
            whether a checkpoint is wanted, which finishes logs that have ended.
        """
        now = self._monotonic()
        self.logs.end_idle(now)
        if self.logs.must_share and not self._said:
            self._said = True
            log.warning(
                "seven of eight ids of entry logs are used: ledgers share a log from now on; a bookie with empty "
                "directories and another id begins anew"
            )
        if self._failed is not None and self.logs.writable and not self.logs.writing:
            self._write()
        if not self.logs.have_ended:
            self._ended_since = None
        elif self._ended_since is None:
            self._ended_since = now
        wanted = self._ended_since is not None and now - self._ended_since >= FINISH_WITHIN_S
        if wanted:
            self._ended_since = None
        return wanted

    # -- descriptors --------------------------------------------------------------------------------------

    def close(self, files: list[File]) -> None:
        """Close descriptors of logs, when nobody has them in hand any more."""
        self._closing += files
        if not files or self._stopped:
            return
        self._pass_on(files, _IN_HAND)

    def _pass_on(self, files: list[File], workers: tuple[WorkerName, ...]) -> None:
        """Close files when these workers have ended what they have in hand."""
        if self._stopped:
            return  # who has stopped this closes them
        if len(workers) > 1:
            self._workers.get(workers[0]).submit(ignore, lambda _result, _error: self._pass_on(files, workers[1:]))
            return

        def closed(_result: None, error: BaseException | None) -> None:
            if error is not None:
                log.warning("a descriptor of an entry log could not be closed: %s", in_words(error))
            for file in files:
                if file in self._closing:
                    self._closing.remove(file)

        self._workers.get(workers[0]).submit(lambda: _close_all(files), closed)

    def stop(self) -> None:
        """The workers end: nothing is handed to them any more."""
        self._stopped = True

    def open_files(self) -> Iterable[File]:
        """The descriptors that wait to be closed. The others are the entry logs'."""
        return list(self._closing)


def _close_all(files: Iterable[File]) -> None:
    for file in files:
        file.close()
