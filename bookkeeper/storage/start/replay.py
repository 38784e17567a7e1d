"""Starting a bookie's disk: lock, look, replay, cover.

1. The directories are locked (B11), files of other directories refused (directory_id.py), the manifest read, the dirty
   markers looked at: absent, and the manifest says so too = the last life ended cleanly (K22). The markers are then
   made, durably, before anything else is written.
2. The index comes from the segments; if the manifest or one of them is damaged, from a scan of the entry logs, which
   hold every record, fences too (K19, B3).
3. The journal behind the mark is replayed: its groups are copied into a new entry log. A damaged or missing group is
   corruption if anything shows that it had been durable (a later one, the entry logs, damage that a power cut does not
   do): limbo, negatives are unknown, everything counts as fenced (K9, K18).
   So is a directory that knows less than is known elsewhere of it: it was put back from an older copy (K32).
4. A new journal file is made ready and a checkpoint taken, so that the mark names the new file and nothing has to be
   replayed twice (K17). Only then are files removed that no manifest names; after any damage or loss none is (G4),
   and what they hold is taken in first (:mod:`~bookkeeper.storage.start.orphaned_logs`).

A crash anywhere in here leaves a state from which the same start works again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from bookkeeper.codec import RECORD_HEADER
from bookkeeper.codec.shapes import Scan
from bookkeeper.errors import CorruptionError, DirectoryLockedError
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.seams import Disk, File, Lock
from bookkeeper.storage.checkpoint.checkpoint import CheckpointResult, CheckpointScope, run_checkpoint
from bookkeeper.storage.checkpoint.manifest import NAME, Manifest, ManifestLog, read_manifest
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.directory_id import directory_id_of, refuse_foreign
from bookkeeper.storage.durable_file import BLOCK, create_file, remove_files, stamp
from bookkeeper.storage.entry_log.entry_log_file import (
    Usage,
    check_header,
    create_log,
    log_name,
    read_map,
    scan_log,
    usage_of,
)
from bookkeeper.storage.entry_log.entry_logs import EntryLogs, EntryLogState
from bookkeeper.storage.index.entry_index import Extent, place
from bookkeeper.storage.index.index_segment import IndexSegment, read_segment, reading_segment, segment_name
from bookkeeper.storage.journal.group_writer import GroupWriter, journal_ids, journal_name, spare_names
from bookkeeper.storage.journal.journal_format import (
    CLEAN_STOP,
    GROUP_HEADER,
    DamagedStretch,
    FileHeader,
    JournalGroup,
    read_groups,
)
from bookkeeper.storage.journal.torn_tail import rot_in
from bookkeeper.storage.ledger_descriptor import LedgerDescriptor, StateRecordKind, apply_state
from bookkeeper.storage.results import OpenReport, PublishedProgress
from bookkeeper.storage.start.evidence import ReplayFindings, indexed_only, logged_only
from bookkeeper.storage.start.orphaned_logs import logs_on_disk, put_journals_aside, take_in

_SEGMENT = re.compile(r"[0-9a-f]{16}\.index")
DIRTY = "dirty"
LOCK = "lock"


@dataclass(slots=True)
class ReplayedDisk:
    """What the engine begins with."""

    manifest: Manifest
    entry_logs: EntryLogs
    journal: GroupWriter
    locks: list[Lock]
    states: dict[int, LedgerDescriptor] = field(default_factory=dict)
    dropped: IdRanges = field(default_factory=IdRanges)
    spares: list[str] = field(default_factory=list)
    report: OpenReport = field(default_factory=OpenReport)


def start(config: StorageConfig, disk: Disk, boot: int, known: PublishedProgress) -> ReplayedDisk:
    """See the module; blocks.

    Raises:
        DirectoryLockedError, ForeignDirectoryError, UnsupportedFormatError, StorageError, OSError
    """
    directories = list(dict.fromkeys((config.ledger_dir, config.journal_dir)))
    for directory in directories:
        disk.make_directories(directory)
    locks: list[Lock] = []
    try:
        for directory in directories:
            locks.append(_lock(disk, directory))
        if expected := known.directory_id or directory_id_of(disk, config):
            refuse_foreign(disk, config, expected)
        return _Replay(config, disk, boot, known, locks).run(directories)
    except BaseException:
        for lock in locks:
            lock.release()
        raise


def _lock(disk: Disk, directory: str) -> Lock:
    try:
        return disk.lock(f"{directory}/{LOCK}")
    except BlockingIOError as error:
        raise DirectoryLockedError(f"{directory} is in use by another process") from error


class _Replay:
    def __init__(
        self, config: StorageConfig, disk: Disk, boot: int, known: PublishedProgress, locks: list[Lock]
    ) -> None:
        self.config, self.disk, self.boot, self.locks = config, disk, boot, locks
        self.elsewhere = known
        self.report = OpenReport()
        self.states: dict[int, LedgerDescriptor] = {}
        self.dropped = IdRanges()
        self.news: set[int] = set()
        """Ledgers of which something was replayed, taken in or rebuilt: no segment that stays knows it."""
        self.lost: list[str] = []
        """Reasons for limbo."""
        self.torn: str | None = None
        self.began = False
        """Without a mark: where the journal begins is known."""
        self.unmarked: str | None = None
        """Why there is no manifest."""
        self.keep: set[int] = set()
        self.before = self._read_manifest()
        self.report.last_boot = self.before.boot
        self.known = set(self.lost)
        """Found by earlier starts, which took in what there was to take in."""
        free = max([self.before.next_log - 1, *logs_on_disk(disk, config.ledger_dir)]) + 1  # G4: none is overwritten
        self.entry_logs = EntryLogs(disk, config.ledger_dir, config.entry_log_bytes, free)
        self.made: list[str] = []
        """Logs of this start: copies of what the journal holds, until a manifest names them."""
        self.snap: CheckpointScope | None = None
        self.last = self.before.sequence
        """The last group that is covered or replayed."""

    def _read_manifest(self) -> Manifest:
        directory = self.config.ledger_dir
        names = self.disk.list(directory)
        logs = logs_on_disk(self.disk, directory)
        self.unmarked = f"{directory}/{NAME} is missing"
        try:
            found = read_manifest(self.disk, directory)
        except CorruptionError as error:
            self.report.quarantined.append(str(error))
            self.unmarked = str(error)
            found = None
        if found is not None:
            self.unmarked = None
            if found.limbo:
                self.lost += found.limbo.split("; ")
            found.directory_id = found.directory_id or self.elsewhere.directory_id  # of before there were any
            return found
        self.report.fresh = not logs and not journal_ids(self.disk, self.config.journal_dir)
        segments = _segment_ids(names)
        made = Manifest(directory_id=self.elsewhere.directory_id, rebuild=not self.report.fresh)
        made.next_log = max(logs, default=0) + 1
        made.next_segment = max(segments, default=0) + 1
        for log_id in logs:
            made.logs[log_id] = self._log_without_manifest(log_id)
        return made

    def _log_without_manifest(self, log_id: int) -> ManifestLog:
        path = f"{self.config.ledger_dir}/{log_name(log_id)}"
        file = self.disk.open(path, write=False)
        try:
            return ManifestLog(read_map(file, log_id)[0], finished=True)
        except CorruptionError:
            return ManifestLog(file.size())
        finally:
            file.close()

    # -- the steps ----------------------------------------------------------------------------------------

    def run(self, directories: list[str]) -> ReplayedDisk:
        marked = [self.disk.exists(f"{directory}/{DIRTY}") for directory in directories]
        self.report.clean = self.report.fresh or (self.before.clean and not any(marked))
        for directory in directories:
            self._mark_dirty(directory)
        self._open_logs()
        if self.before.rebuild or not self._load_segments():
            self._rebuild()
        try:
            return self._serveable()
        except OSError:
            if self.snap is None or not self.snap.published:  # whoever tries again on a full disk needs the space
                remove_files(self.disk, self.config.ledger_dir, self.made)
            raise

    @property
    def damaged(self) -> bool:
        """Something is not as it was left: nothing may be removed (G4)."""
        return bool(set(self.lost) - self.known or self.report.quarantined)

    def _serveable(self) -> ReplayedDisk:
        whole = len(self.lost) + len(self.report.quarantined)
        self._replay()
        broken = len(self.lost) + len(self.report.quarantined) > whole  # something is wrong with the journal itself
        if self.damaged:
            self._take_in()
        journal = GroupWriter(
            self.disk, self.config.journal_dir, self.config.journal_file_bytes, self.before.directory_id, self.boot
        )
        spares = self._whole_spares()
        ids = journal_ids(self.disk, self.config.journal_dir)
        file_id = max([self.before.next_file - 1, self.before.file_id, self.elsewhere.file_id, *ids]) + 1  # K10
        journal.begin_file(file_id, self.last + 1, spares.pop() if spares else None)
        covered = self._cover(file_id, len(spares))
        if broken or self.known:  # in the second case: those that an unfinished start before this one has left
            put_journals_aside(self.disk, self.config.journal_dir, file_id if broken else self.before.file_id)
        if not self.damaged:
            self._remove_unnamed(covered.manifest)
        self.entry_logs.covered(covered.manifest.logs)
        self.report.limbo_reason = covered.manifest.limbo
        self.report.torn_tail = self.torn
        return ReplayedDisk(
            covered.manifest,
            self.entry_logs,
            journal,
            self.locks,
            self.states,
            self.dropped,
            spares + covered.spares,
            self.report,
        )

    def _whole_spares(self) -> list[str]:
        """Spare journal files that were written to their end (K11); what else is there of that name goes."""
        directory, whole, rest = self.config.journal_dir, list[str](), list[str]()
        for name in spare_names(self.disk, directory):
            file = self.disk.open(f"{directory}/{name}", write=False)
            try:
                (whole if file.size() >= self.config.journal_file_bytes else rest).append(name)
            finally:
                file.close()
        remove_files(self.disk, directory, rest)
        return whole

    def _mark_dirty(self, directory: str) -> None:
        """K22: durable before the first write of this life. One that is there may have lost its body, not its name."""
        path = f"{directory}/{DIRTY}"
        if self.disk.exists(path):
            self.disk.sync_directory(directory)
        else:
            create_file(self.disk, path, stamp(b"BKDM", 1, str(self.boot).encode()))

    def _open_logs(self) -> None:
        for log_id, entry in sorted(self.before.logs.items()):
            path = f"{self.config.ledger_dir}/{log_name(log_id)}"
            if not self.disk.exists(path):
                self.lost.append(f"{path} is missing")
                continue
            file = self.disk.open(path, write=not entry.finished)
            self.entry_logs.add(log_id, entry, file)
            try:
                check_header(file, log_id)
            except CorruptionError as error:  # the records have checksums of their own
                self.report.quarantined.append(str(error))
                self.keep.add(log_id)
            if file.size() < entry.end:
                self.lost.append(f"{path} ends at {file.size()}, {entry.end} bytes were synced")
                self.keep.add(log_id)

    def _load_segments(self) -> bool:
        """The index and all states, as of the mark; False if a segment is damaged or missing."""
        for segment_id in self.before.segments:
            path = f"{self.config.ledger_dir}/{segment_name(segment_id)}"
            try:
                with reading_segment(segment_id, path):
                    segment = self._read_segment(path, segment_id)
            except CorruptionError as error:
                self.report.quarantined.append(str(error))
                return False
            by_ledger: dict[int, list[Extent]] = {}
            for extent in segment.extents:
                by_ledger.setdefault(extent.ledger_id, []).append(extent)
            for ledger_id, extents in by_ledger.items():
                self._state(ledger_id).index.add(extents)
            for row in segment.states:
                if isinstance(row, LedgerDescriptor):
                    if (known := self.states.get(row.ledger_id)) is not None:
                        row.index = known.index
                    self.states[row.ledger_id] = row
                else:
                    self._drop_all(*row)
        return True

    def _read_segment(self, path: str, segment_id: int) -> IndexSegment:
        file = self.disk.open(path, write=False)
        try:
            return read_segment(file, segment_id)
        finally:
            file.close()

    def _rebuild(self) -> None:
        """The index and all states from the entry logs (K19). Damage means that something may be missing (B5)."""
        self.states.clear()
        self.dropped = self._still_dropped()
        self.report.rebuilt = not self.report.fresh
        for log_id, log in sorted(self.entry_logs.logs.items()):
            self._rebuild_from(log_id, log)

    def _still_dropped(self) -> IdRanges:
        """The deleted ledgers that intact segments name: the log with a ledger's DROPPED record may be gone (M6)."""
        found = IdRanges()
        for segment_id in _segment_ids(self.disk.list(self.config.ledger_dir)):
            path = f"{self.config.ledger_dir}/{segment_name(segment_id)}"
            try:
                with reading_segment(segment_id, path):
                    segment = self._read_segment(path, segment_id)
            except CorruptionError:
                continue
            found.update(row for row in segment.states if isinstance(row, tuple))
        return found

    def _rebuild_from(self, log_id: int, log: EntryLogState) -> None:
        assert log.file is not None
        whole, usage = BLOCK, Usage()

        def found(data: bytes, at: int, scan: Scan) -> None:
            nonlocal whole
            self._apply(data, scan, place(log_id, at))
            if not log.finished:
                usage_of(scan, usage)
            whole = at + scan.next

        torn = not log.finished and self.before.sequence == 0
        bad = scan_log(log.file, min(log.end, log.file.size()), found, tail_may_be_torn=torn)
        if bad:
            self.keep.add(log_id)
            self.report.quarantined += map(str, bad)
            self.lost.append(f"{bad[0]} cannot be read")
        if not log.finished:
            self.entry_logs.recount(log_id, whole if torn and not bad else log.end, usage)

    def _take_in(self) -> None:
        """G4: the logs may hold the last copy of what the journal has lost."""
        directory = self.config.ledger_dir
        for log_id in logs_on_disk(self.disk, directory):
            log = self.entry_logs.logs.get(log_id)
            if (log is not None and log.finished) or log_name(log_id) in self.made:
                continue
            self.keep.add(log_id)

            def found(data: bytes, at: int, scan: Scan, log_id: int = log_id) -> None:
                self._apply(data, scan, place(log_id, at))

            taken = take_in(self.disk, directory, log_id, BLOCK if log is None else log.end, found)
            self.entry_logs.extend(log_id, taken.file, taken.end, taken.usage)
            self.report.quarantined += map(str, taken.bad)

    # -- the journal --------------------------------------------------------------------------------------

    def _replay(self) -> None:
        ids = [key for key in journal_ids(self.disk, self.config.journal_dir) if key >= self.before.file_id]
        if self.before.file_id and self.before.file_id not in ids and not self.report.clean:
            self.lost.append(f"{journal_name(self.before.file_id)} is missing")
        for file_id in ids:
            self._replay_file(file_id)
        if self.report.clean and self.torn is not None:
            self.lost.append(f"after a clean stop: {self.torn}")
        if not self.report.clean and (proof := self._evidence()) is not None:
            self._durable_and_gone(self.torn or f"{self.config.journal_dir} behind group {self.last}", proof, 0)
        self._compare()

    def _compare(self) -> None:
        """K32, and what a directory without its manifest cannot tell (B5)."""
        directory, known = self.config.ledger_dir, self.elsewhere
        if self.unmarked is not None:
            if known.boot or self.last or self.before.logs or self.before.next_segment > 1:
                self.lost.append(f"{self.unmarked}: whether other files are missing, too, cannot be told")
        elif known.boot > self.before.boot:
            self.lost.append(
                f"{directory} was put back from an older copy: it knows of start {self.before.boot}, the bookie's data "
                f"have seen start {known.boot}"
            )
        if known.sequence > self.last:
            self.lost.append(
                f"{self.config.journal_dir} was put back from an older copy, or has lost its end: {known.sequence} "
                f"groups were durable, {self.last} are known here"
            )
            self.torn, self.last = None, known.sequence

    def _evidence(self) -> str | None:
        """That there was a group behind the last one (K9)."""
        directory, replayed = self.config.ledger_dir, ReplayFindings(self.states, self.dropped)
        segments = _segment_ids(self.disk.list(directory))
        return logged_only(self.disk, directory, self.before, replayed, self.made) or indexed_only(
            self.disk, directory, self.before, segments, replayed
        )

    def _judge_tail(self, file: File, file_id: int, bad: DamagedStretch) -> None:
        """The last group of a file is not whole, or nothing follows the last whole one, as at the end of most."""
        place = f"{file.path} at {bad.offset}"
        sequence = bad.sequence if bad.begun else self.last + 1
        if sequence <= self.last:  # it is covered
            return
        if (proof := rot_in(file, file_id, bad.offset, sequence)) is not None:
            self._durable_and_gone(place, proof, sequence)
        elif bad.begun:
            self.torn = f"{place}: the last group is not whole"

    def _durable_and_gone(self, place: str, proof: str, sequence: int) -> None:
        self.lost.append(f"{place}: a group that had been durable is damaged or missing ({proof})")
        self.report.quarantined.append(place)
        self.torn, self.last = None, max(sequence, self.last + 1)

    def _replay_file(self, file_id: int) -> None:
        path = f"{self.config.journal_dir}/{journal_name(file_id)}"
        file = self.disk.open(path, write=False)
        try:
            try:
                header = FileHeader.decode(file.pread(BLOCK, 0), path)
                self._gap(header.first_sequence, path)
            except CorruptionError as error:
                self.report.quarantined.append(str(error))
            for item in read_groups(file, file_id):
                if isinstance(item, DamagedStretch):
                    if item.claims > self.last:  # a torn group's header says what was durable before it
                        self._gap(item.claims + 1, path)
                    elif item.last:
                        self._judge_tail(file, file_id, item)
                elif item.header.sequence > self.last:
                    self._gap(item.header.sequence, path)
                    self._replay_group(item)
        finally:
            file.close()

    def _gap(self, sequence: int, path: str) -> None:
        """K9: groups between the last one and this are gone, though this one says they were durable."""
        if self.last == 0 and self.before.rebuild and not self.began:  # no mark: from the oldest journal on (K15)
            self.began = True
            self.last = sequence - 1
            if self.last and not self.before.logs:  # what the journal's earlier groups were covered by
                self.lost.append(f"{self.config.ledger_dir} holds no entry logs")
        if sequence > self.last + 1:
            groups = f"groups {self.last + 1} to {sequence - 1}"
            self.lost.append(f"{groups} before {path} are damaged or missing")
            self.report.quarantined.append(groups)
            self.last = sequence - 1
            if self.last and not self.before.logs:  # what the journal's earlier groups were covered by
                self.lost.append(f"{self.config.ledger_dir} holds no entry logs")
        if sequence > self.last:
            self.torn = None

    def _replay_group(self, group: JournalGroup) -> None:
        self.last = group.header.sequence
        self.report.replayed_groups += 1
        self.report.replayed_records += group.header.records
        if group.header.flags & CLEAN_STOP or not group.header.records:
            return
        log_id, offset = self.entry_logs.next_place()
        if self.entry_logs.logs[log_id].file is None:
            self.entry_logs.created(log_id, self._new_log(log_id))
        self.entry_logs.file(log_id).pwrite(group.data[GROUP_HEADER:], offset)
        usage: dict[int, list[int]] = {}
        usage_of(group.scan, usage)
        self.entry_logs.given(log_id, offset + group.header.size, usage)
        self._apply(group.data, group.scan, place(log_id, offset) - GROUP_HEADER)

    def _new_log(self, log_id: int) -> File:
        self.made.append(log_name(log_id))
        return create_log(self.disk, self.config.ledger_dir, log_id, self.before.directory_id, self.boot)

    def _apply(self, data: bytes, scan: Scan, base: int) -> None:
        """Add the records of a scan to states and index; ``base`` is the place of ``data``'s first byte."""
        rows = zip(scan.offsets, scan.ledger_ids, scan.entry_ids, scan.lacs, scan.sizes, strict=True)
        for offset, ledger_id, entry_id, lac, size in rows:
            if ledger_id in self.dropped:
                continue
            self.news.add(ledger_id)
            if entry_id == StateRecordKind.DROPPED:
                self._drop(ledger_id)
                continue
            state = self._state(ledger_id)
            if entry_id < 0:
                begin = offset + RECORD_HEADER
                apply_state(state, entry_id, memoryview(data)[begin : begin + size])
                continue
            state.index.tail.put(entry_id, base + offset)
            state.note_entries(entry_id, entry_id, lac, RECORD_HEADER + size)

    def _state(self, ledger_id: int) -> LedgerDescriptor:
        if (state := self.states.get(ledger_id)) is None:
            state = self.states[ledger_id] = LedgerDescriptor(LedgerId(ledger_id))
        return state

    def _drop_all(self, first: int, last: int) -> None:
        if first < last:
            for ledger_id in [key for key in self.states if first <= key <= last]:
                self.states.pop(ledger_id)
            self.dropped.add(first, last)
        else:
            self._drop(first)

    def _drop(self, ledger_id: int) -> None:
        self.states.pop(ledger_id, None)
        self.dropped.add(ledger_id)

    # -- the end ------------------------------------------------------------------------------------------

    def _cover(self, file_id: int, spares: int) -> CheckpointResult:
        """K17: everything replayed is covered before anyone is served."""
        self.before.boot = self.boot
        self.entry_logs.leave_current()  # this life begins a log of its own
        segment_id = max(self.before.next_segment, 1)
        if self.damaged:
            names = self.disk.list(self.config.ledger_dir)
            segment_id = max([segment_id - 1, *_segment_ids(names)]) + 1
        snap = self.snap = CheckpointScope(self.before, segment_id, self.entry_logs.next_log, file_id + 1)
        snap.keep_journals = bool(self.damaged or self.known)
        snap.file_id, snap.sequence = file_id, self.last
        snap.rebuilt = self.before.rebuild or self.report.rebuilt
        news = self.states.keys() if snap.rebuilt else self.news
        snap.tails = {key: state.index.freeze() for key, state in self.states.items() if state.index.tail}
        snap.states = {key: state.encode() for key, state in self.states.items() if key in news}
        gone = self.dropped if snap.rebuilt else [(key, key) for key in sorted(news) if key in self.dropped]
        snap.newly_dropped = list(gone)
        snap.alive, snap.dropped = set(self.states), self.dropped
        snap.logs = {key: log.entry() for key, log in self.entry_logs.logs.items()}
        for key, log in self.entry_logs.logs.items():
            assert log.file is not None
            if log.dirty:
                snap.unsynced[key] = log.file
            if not log.finished and key not in self.keep:
                snap.finish[key] = (log.file, log.end, log.usage)
        snap.limbo = "; ".join(dict.fromkeys(self.lost)) or None
        snap.quarantined = list(dict.fromkeys([*self.before.quarantined, *self.report.quarantined]))
        snap.spares = max(self.config.journal_spares - spares, 0)
        covered = run_checkpoint(self.disk, self.config, snap)
        self._adopt(covered)
        return covered

    def _adopt(self, covered: CheckpointResult) -> None:
        for key, state in self.states.items():
            state.index.adopt(covered.merged, covered.extents.get(key, []), covers_frozen=True)

    def _remove_unnamed(self, manifest: Manifest) -> None:
        directory = self.config.ledger_dir
        logs, segments = logs_on_disk(self.disk, directory), _segment_ids(self.disk.list(directory))
        old = [log_name(key) for key in logs if key not in manifest.logs]
        old += [segment_name(key) for key in segments if key not in manifest.segments]
        remove_files(self.disk, directory, old)


def _segment_ids(names: Sequence[str]) -> list[int]:
    """Of the index segments in a directory; what else lies there is not ours."""
    return [int(name[:-6], 16) for name in names if _SEGMENT.fullmatch(name)]
