"""The second part of a start: the journal behind the mark is replayed into a new entry log.

A group that is damaged or missing is a loss if anything shows that it had been durable: a later group, the entry
logs, or damage that a power cut cannot do. A directory that knows less than others know of it was put back from an
older copy, which is a loss as well. After a loss the bookie is in limbo: it answers "unknown" instead of "no such
entry", and every ledger counts as fenced. :class:`~bookkeeper.storage.start.group_continuity.GroupContinuity`
decides; this file reads and copies.

After any damage or loss the replay also takes in what entry logs hold beyond the manifest: it may be the last copy of
what the journal has lost.
"""

from __future__ import annotations

from typing import Final

from bookkeeper.codec import ledger_runs
from bookkeeper.codec.shapes import Scan
from bookkeeper.errors import CorruptionError
from bookkeeper.seams import Buffer, Disk, File
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import BLOCK, sync
from bookkeeper.storage.base.read_room import ReadRoom
from bookkeeper.storage.base.results import PublishedProgress
from bookkeeper.storage.entry_log.entry_log_file import Usage, add_usage, create_log, log_ids, log_name
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.index.index_segment import segment_ids
from bookkeeper.storage.journal.group_writer import journal_ids, journal_name
from bookkeeper.storage.journal.journal_format import (
    GROUP_HEADER,
    DamagedStretch,
    FileHeader,
    JournalGroup,
    read_groups,
)
from bookkeeper.storage.journal.torn_tail import rot_in
from bookkeeper.storage.start.evidence import ReplayFindings, indexed_only, logged_only
from bookkeeper.storage.start.group_continuity import GroupContinuity
from bookkeeper.storage.start.inventory import Inventory
from bookkeeper.storage.start.orphaned_logs import take_in
from bookkeeper.storage.start.replayed_groups import ReplayedGroups

AHEAD: Final = 16 << 20
"""So many bytes are asked for before they are needed."""

STEP: Final = 1 << 20
"""The system takes no more than a small part of a longer piece of advice."""


class JournalReplay:
    """One replay; blocks."""

    def __init__(
        self, config: StorageConfig, disk: Disk, boot: int, found: Inventory, *, only_look: bool = False
    ) -> None:
        """
        Args:
            only_look: nothing is written; the entry logs of this start have numbers and no files.
        """
        self._config, self._disk, self._boot, self._found = config, disk, boot, found
        self._only_look = only_look
        self.groups = GroupContinuity(
            config, found.manifest, found.losses, clean=found.report.clean, no_manifest=found.no_manifest
        )
        self._room = ReadRoom()
        self._replayed = ReplayedGroups(found.manifest.sequence, self._read_log)
        self.made: list[str] = []
        """Logs of this start: copies of what the journal holds, until a manifest names them."""

    def run(self, known: PublishedProgress) -> None:
        """Add everything that the journal holds to what was found, and judge what it does not hold.

        Args:
            known: what the directory must know, or has lost data.

        Raises:
            OSError: what was made by then is named in ``made``.
        """
        self._found.losses.journal_begins()
        for file_id in self.groups.files(journal_ids(self._disk, self._config.journal_dir)):
            self._replay_file(file_id)
        self.groups.ended(None if self._found.report.clean else self._evidence())
        self.groups.compare(known)

    def _replay_file(self, file_id: int) -> None:
        path = f"{self._config.journal_dir}/{journal_name(file_id)}"
        file = self._disk.open(path, write=False)
        try:
            try:
                header = FileHeader.decode(file.pread(BLOCK, 0), path)
                self.groups.file_begins(header.first_sequence, path)
            except CorruptionError as error:
                self._found.losses.quarantined.append(str(error))
            ahead = FileReadAhead(file)
            for item in read_groups(file, file_id, self._room):
                ahead.reached(item.end)
                if isinstance(item, DamagedStretch):
                    self._judge(file, file_id, item)
                elif self.groups.group(item.header.sequence, path):
                    self._replay_group(item)
        finally:
            file.close()

    def _judge(self, file: File, file_id: int, bad: DamagedStretch) -> None:
        sequence = self.groups.unreadable(bad, file.path)
        if sequence is not None:
            proof = rot_in(file, file_id, bad.offset, sequence)
            self.groups.judged(f"{file.path} at {bad.offset}", bad.begun, sequence, proof)

    def _replay_group(self, group: JournalGroup) -> None:
        report, logs, sequence = self._found.report, self._found.entry_logs, group.header.sequence
        report.replayed_groups += 1
        report.replayed_records += group.header.records
        if not group.header.records:
            return self._replayed.add(sequence, 0, 0, 0)
        if not self._replayed.follows(sequence):
            logs.leave_current()  # in a log the groups follow one another without a gap
        log_id, offset = logs.next_place()
        if not self._only_look:
            if logs.logs[log_id].file is None:
                logs.created(log_id, self._new_log(log_id, sequence))
            logs.file(log_id).pwrite(memoryview(group.data)[GROUP_HEADER:], offset)
        self._replayed.add(sequence, group.header.size, log_id, offset)
        base = place(log_id, offset) - GROUP_HEADER
        runs, usage = ledger_runs(group.scan, base), Usage()
        add_usage(runs, usage)
        logs.given(log_id, offset + group.header.size, usage)
        return self._found.ledgers.apply_runs(group.data, runs, base)

    def _new_log(self, log_id: int, sequence: int) -> File:
        self.made.append(log_name(log_id))
        directory, known = self._config.ledger_dir, self._found.manifest
        return create_log(self._disk, directory, log_id, known.directory_id, self._boot, first_group=sequence)

    def _read_log(self, log_id: int, size: int, offset: int) -> bytes:
        return self._found.entry_logs.file(log_id).pread(size, offset)

    def _evidence(self) -> str | None:
        """That there was a group behind the last one."""
        directory, before = self._config.ledger_dir, self._found.manifest
        replayed = ReplayFindings(self._found.ledgers.states, None if self._only_look else self._replayed)
        segments = segment_ids(self._disk, directory)
        return logged_only(self._disk, directory, before, replayed, self.made) or indexed_only(
            self._disk, directory, before, segments, replayed
        )

    def take_in_orphans(self) -> None:
        """Take in what entry logs hold beyond the manifest: it may be the last copy of what the journal has lost."""
        directory, found = self._config.ledger_dir, self._found
        for log_id in log_ids(self._disk, directory):
            log = found.entry_logs.logs.get(log_id)
            if (log is not None and log.finished) or log_name(log_id) in self.made:
                continue
            found.keep.add(log_id)

            def each(data: Buffer, at: int, scan: Scan, log_id: int = log_id) -> None:
                found.ledgers.apply(data, scan, place(log_id, at))

            taken = take_in(self._disk, directory, log_id, BLOCK if log is None else log.end, each)
            file: File | None = taken.file
            if sum(1 for _ in found.entry_logs.open_files()) >= self._config.open_logs_max:
                try:
                    sync(taken.file)
                finally:
                    taken.file.close()
                file = None
            found.entry_logs.extend(log_id, file, taken.end, taken.usage)
            found.losses.quarantined += map(str, taken.bad)


class FileReadAhead:
    """Has the system read one file of the journal while what was read before is checked and copied.

    The journal is written past the page cache, so a start reads it from the disk. What the system reads ahead by itself
    is little by default; then the disk is idle while a group goes into its entry log.
    """

    def __init__(self, file: File) -> None:
        self._file, self._size = file, file.size()
        self._asked = 0
        self.reached(0)

    def reached(self, offset: int) -> None:
        """Everything below ``offset`` was read."""
        self._asked = max(self._asked, offset)
        end = min(offset + AHEAD, self._size)
        while self._asked + STEP <= end or self._asked < end == self._size:
            size = min(STEP, end - self._asked)
            self._file.expect(self._asked, size)
            self._asked += size
