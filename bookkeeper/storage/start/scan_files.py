"""The first part of a start: what is there. Nothing is written.

The manifest says which files belong to the bookie. Without a manifest, every entry log in the directory does. The
last run was stopped cleanly if the manifest says so and no directory has a dirty marker. The index comes from the
segments. If the manifest or a segment is damaged, the index comes from a scan of the entry logs, which hold every
record, fences too.
"""

from __future__ import annotations

from collections.abc import Sequence

from bookkeeper.codec.shapes import Scan
from bookkeeper.errors import CorruptionError
from bookkeeper.ids import IdRanges
from bookkeeper.seams import Buffer, Disk, File
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.dirty_marker import is_marked
from bookkeeper.storage.base.durable_file import BLOCK, close_all
from bookkeeper.storage.base.manifest import NAME, Manifest, ManifestLog, read_manifest
from bookkeeper.storage.base.results import OpenReport
from bookkeeper.storage.entry_log.entry_log_file import (
    Usage,
    check_header,
    log_ids,
    log_name,
    read_map,
    scan_log,
    usage_of,
)
from bookkeeper.storage.entry_log.entry_logs import EntryLogs, EntryLogState
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.index.index_segment import (
    read_segment,
    reading_segment,
    segment_ids,
    segment_name,
)
from bookkeeper.storage.index.segment_table import SegmentTable
from bookkeeper.storage.journal.group_writer import journal_ids
from bookkeeper.storage.start.inventory import Inventory
from bookkeeper.storage.start.losses import StartLosses

READING_SHARE = 10
"""As many logs are kept open for reading as times for writing."""


def scan_files(config: StorageConfig, disk: Disk, directories: Sequence[str], directory_id: int) -> Inventory:
    """Blocks; reads only.

    Args:
        directory_id: the id that is known for these directories; 0: none is.

    Raises:
        UnsupportedFormatError, OSError
    """
    report, losses = OpenReport(), StartLosses()
    manifest, no_manifest = _Manifests(config, disk, report, losses, directory_id).read()
    report.last_boot = manifest.boot
    report.clean = report.fresh or (manifest.clean and not any(is_marked(disk, each) for each in directories))
    free = max([manifest.next_log - 1, *log_ids(disk, config.ledger_dir)]) + 1  # none is overwritten
    reading_max = READING_SHARE * config.open_logs_max
    logs = EntryLogs(disk, config.ledger_dir, config.entry_log_bytes, free, reading_max)
    found = Inventory(manifest, logs, losses=losses, report=report, no_manifest=no_manifest)
    try:
        _Contents(config, disk, found).read()
    except BaseException:
        close_all(logs.open_files())
        raise
    return found


class _Manifests:
    """Reads the manifest, or makes what stands for it."""

    def __init__(
        self, config: StorageConfig, disk: Disk, report: OpenReport, losses: StartLosses, directory_id: int
    ) -> None:
        self.config, self.disk, self.directory_id = config, disk, directory_id
        self.report, self.losses = report, losses

    def read(self) -> tuple[Manifest, str | None]:
        """The manifest, and why it is not the one on disk."""
        directory = self.config.ledger_dir
        try:
            found = read_manifest(self.disk, directory)
        except CorruptionError as error:
            self.losses.quarantined.append(str(error))
            return self._without(), str(error)
        if found is None:
            return self._without(), f"{directory}/{NAME} is missing"
        if found.limbo:
            self.losses.known_before(found.limbo.split("; "))
        found.directory_id = found.directory_id or self.directory_id  # of before there were any
        return found, None

    def _without(self) -> Manifest:
        directory = self.config.ledger_dir
        logs = log_ids(self.disk, directory)
        self.report.fresh = not logs and not journal_ids(self.disk, self.config.journal_dir)
        made = Manifest(directory_id=self.directory_id, rebuild=not self.report.fresh)
        made.next_log = max(logs, default=0) + 1
        made.next_segment = max(segment_ids(self.disk, directory), default=0) + 1
        for log_id in logs:
            made.logs[log_id] = self._log(log_id)
        return made

    def _log(self, log_id: int) -> ManifestLog:
        file = self.disk.open(f"{self.config.ledger_dir}/{log_name(log_id)}", write=False)
        try:
            return ManifestLog(read_map(file, log_id)[0], finished=True)
        except CorruptionError:
            return ManifestLog(file.size())
        finally:
            file.close()


class _Contents:
    """Opens the entry logs, and reads the index or makes it anew."""

    def __init__(self, config: StorageConfig, disk: Disk, found: Inventory) -> None:
        self.directory, self.disk, self.found = config.ledger_dir, disk, found
        self.open_max, self.of_one = config.open_logs_max, config.entry_log_per_ledger
        self.manifest, self.losses = found.manifest, found.losses
        self.ledgers, self.entry_logs = found.ledgers, found.entry_logs

    def read(self) -> None:
        self._open_logs()
        if self.manifest.rebuild or not self._load_segments():
            self._rebuild()

    def _open_logs(self) -> None:
        for log_id, entry in sorted(self.manifest.logs.items()):
            path = f"{self.directory}/{log_name(log_id)}"
            if not self.disk.exists(path):
                self.losses.lost.append(f"{path} is missing")
                continue
            file = self.disk.open(path, write=not entry.finished)
            keep = len(self.entry_logs.logs) < self.open_max
            self.entry_logs.add(log_id, entry, file if keep else None, of_one=self.of_one)
            try:
                self._check_log(file, log_id, entry)
            finally:
                if not keep:
                    file.close()

    def _check_log(self, file: File, log_id: int, entry: ManifestLog) -> None:
        """Its header is its own, and it has every byte that was synced."""
        try:
            check_header(file, log_id)
        except CorruptionError as error:  # the records have checksums of their own
            self.losses.quarantined.append(str(error))
            self.found.keep.add(log_id)
        if file.size() < entry.end:
            self.losses.lost.append(f"{file.path} ends at {file.size()}, {entry.end} bytes were synced")
            self.found.keep.add(log_id)

    # -- the index from its segments ----------------------------------------------------------------------

    def _load_segments(self) -> bool:
        """The index and all states, as of the mark; False if a segment is damaged or missing."""
        for segment_id in self.manifest.segments:
            try:
                table = self._read_segment(segment_id)
                if segment_id == self.manifest.deletions:
                    self.ledgers.dropped.update(table.dropped)  # which it says once more, and nothing else
                else:
                    self.ledgers.states.add_table(table)
            except CorruptionError as error:
                self.losses.quarantined.append(str(error))
                return False
        return True

    def _read_segment(self, segment_id: int) -> SegmentTable:
        path = f"{self.directory}/{segment_name(segment_id)}"
        with reading_segment(segment_id, path):
            file = self.disk.open(path, write=False)
            try:
                return read_segment(file, segment_id)
            finally:
                file.close()

    # -- the index from the entry logs --------------------------------------------------------------------

    def _rebuild(self) -> None:
        """The index and all states from the entry logs. Damage means that something may be missing."""
        self.ledgers.begin_anew(self._still_dropped())
        self.found.report.rebuilt = not self.found.report.fresh
        for log_id, log in sorted(self.entry_logs.logs.items()):
            self._rebuild_from(log_id, log)

    def _still_dropped(self) -> IdRanges:
        """The deleted ledgers that intact segments name: the log with a ledger's DROPPED record may be gone."""
        dropped = IdRanges()
        for segment_id in segment_ids(self.disk, self.directory):
            try:
                segment = self._read_segment(segment_id)
            except CorruptionError:
                continue
            dropped.update(segment.dropped)
        return dropped

    def _rebuild_from(self, log_id: int, log: EntryLogState) -> None:
        file = log.file or self.disk.open(f"{self.directory}/{log_name(log_id)}", write=False)
        whole, usage = BLOCK, Usage()

        def found(data: Buffer, at: int, scan: Scan) -> None:
            nonlocal whole
            self.ledgers.apply(data, scan, place(log_id, at))
            if not log.finished:
                usage_of(scan, usage)
            whole = at + scan.next

        torn = not log.finished and self.manifest.sequence == 0
        try:
            bad = scan_log(file, min(log.end, file.size()), found, tail_may_be_torn=torn)
        finally:
            if log.file is None:
                file.close()
        if bad:
            self.found.keep.add(log_id)
            self.losses.quarantined += map(str, bad)
            self.losses.lost.append(f"{bad[0]} cannot be read")
        if not log.finished:
            self.entry_logs.recount(log_id, whole if torn and not bad else log.end, usage)
