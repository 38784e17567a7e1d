"""A checkpoint: other files take over what the journal holds, in an order that survives a crash.

Sync the entry logs → write and sync an index segment → replace the manifest → recycle the journal files below the mark
and remove files that the manifest no longer names (K3, K13-K16), with those that an earlier start has put aside once
nothing is missing any more. The job runs on the checkpoint's worker, on a snapshot
that nobody changes.

Unreadable old files do not stop a checkpoint. It keeps a log that it cannot read, and skips a merge with a segment that
it cannot read. The manifest names both (K27, G4).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bookkeeper.errors import CorruptionError, in_words
from bookkeeper.ids import IdRanges
from bookkeeper.seams import Disk, File
from bookkeeper.storage.checkpoint.manifest import Manifest, ManifestLog
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.durable_file import TRANSIENT, remove_files, sync
from bookkeeper.storage.entry_log.entry_log_file import Usage, finish_log, log_name, read_usage
from bookkeeper.storage.index.entry_index import Extent, IndexTail
from bookkeeper.storage.index.index_segment import (
    IndexSegmentWriter,
    UnreadableSegmentError,
    merge_segments,
    plan_merge,
    reading_segment,
    segment_name,
)
from bookkeeper.storage.journal.group_writer import journal_ids, put_aside, recycle


@dataclass(slots=True)
class CheckpointScope:
    """What a checkpoint covers: everything up to one group, as it was when that group was closed."""

    before: Manifest
    """The manifest on the disk."""
    segment_id: int = 0
    next_log: int = 1
    next_file: int = 1
    file_id: int = 0
    sequence: int = 0
    """The last covered group. ``file_id`` is its journal file."""
    tails: dict[int, IndexTail] = field(default_factory=dict)
    states: dict[int, bytes] = field(default_factory=dict)
    """Rows of the ledgers that changed."""
    newly_dropped: list[tuple[int, int]] = field(default_factory=list)
    """Ledgers dropped since the last checkpoint: first and last of each run."""
    alive: set[int] = field(default_factory=set)
    dropped: IdRanges = field(default_factory=IdRanges)
    logs: dict[int, ManifestLog] = field(default_factory=dict)
    """All logs, as the manifest will record them."""
    unsynced: dict[int, File] = field(default_factory=dict)
    finish: dict[int, tuple[File, int, Usage]] = field(default_factory=dict)
    """Full logs: file, end of records, and the ledgers in them."""
    collect: bool = False
    """Whether to look for logs without a live ledger."""
    keep: set[int] = field(default_factory=set)
    """Logs that must stay, whatever they hold."""
    emptied: set[int] = field(default_factory=set)
    """Logs that no place points into any more, once the tails are in the index. They go."""
    rebuilt: bool = False
    """Whether the tails are the whole index. Then the old segments go."""
    clean: bool = False
    rebuild: bool = False
    unreadable: set[int] = field(default_factory=set)
    """Segments that a merge could not read. The job adds to them."""
    limbo: str | None = None
    quarantined: list[str] = field(default_factory=list)
    """Places that cannot be read. The job adds to them."""
    spares: int = 0
    """How many journal files to keep for reuse."""
    keep_journals: bool = False
    """Whether the journal files behind the mark stay, because data may be lost (G4)."""
    published: bool = False
    """Whether a manifest that names the new segment may be on the disk. The job sets it, and may fail later."""


@dataclass(slots=True)
class CheckpointResult:
    """What a checkpoint did."""

    manifest: Manifest
    extents: dict[int, list[Extent]]
    merged: set[int]
    """Segments that the manifest no longer names; ``extents`` holds their places. Reads use the files until the caller
    has adopted ``extents`` and removes them."""
    removed_logs: list[int]
    spares: list[str]


def run_checkpoint(disk: Disk, config: StorageConfig, snap: CheckpointScope) -> CheckpointResult:
    """Make one checkpoint. Blocks; runs on the checkpoint's worker.

    Raises:
        SyncFailedError: a sync failed, which is final (K23). OSError: a file could not be written, or the disk has a
        passing problem (K28). Nothing is lost, because the journal
            stays (K16).
        InvariantError: the mark would move back (K14).
    """
    directory, before = config.ledger_dir, snap.before
    for file in snap.unsynced.values():
        sync(file)
    for log_id, (file, end, usage) in snap.finish.items():
        finish_log(file, log_id, end, usage)
        snap.logs[log_id] = ManifestLog(end, finished=True)
    writer, merged = _write_segment(disk, directory, config, snap)
    removed = sorted(snap.emptied.union(_dead_logs(disk, directory, snap) if snap.collect else ()))
    segments = {key: size for key, size in before.segments.items() if key not in merged}
    if not writer.empty:
        segments[snap.segment_id] = writer.size
    manifest = replace(
        before,
        clean=snap.clean,
        file_id=snap.file_id,
        sequence=snap.sequence,
        next_file=snap.next_file,
        next_log=snap.next_log,
        next_segment=snap.segment_id + 1,
        logs={log_id: entry for log_id, entry in snap.logs.items() if log_id not in removed},
        segments=segments,
        rebuild=snap.rebuild,
        limbo=snap.limbo,
        quarantined=snap.quarantined,
    )
    snap.published = True
    manifest.write(disk, directory, before)
    spares: list[str] = []
    try:
        files = [] if snap.keep_journals else journal_ids(disk, config.journal_dir)
        passed = [file_id for file_id in files if file_id < snap.file_id]
        recycle(disk, config.journal_dir, passed, snap.spares, spares)
        if snap.limbo is None and not snap.quarantined and not snap.keep_journals:  # nothing is missing any more
            remove_files(disk, config.journal_dir, put_aside(disk, config.journal_dir))
        remove_files(disk, directory, [log_name(key) for key in removed])
    except OSError as error:  # a later checkpoint or start removes what is left over
        if error.errno not in TRANSIENT:
            raise
    return CheckpointResult(manifest, writer.extents, merged, removed, spares)


def _write_segment(
    disk: Disk, directory: str, config: StorageConfig, snap: CheckpointScope
) -> tuple[IndexSegmentWriter, set[int]]:
    """Write the new tails, merged with the small segments if there are too many segments."""
    writer = IndexSegmentWriter(snap.segment_id, snap.before.directory_id)
    merged = set(snap.before.segments) if snap.rebuilt else set()
    if not snap.rebuilt and (chosen := _to_merge(config, snap)):
        try:
            _merge(writer, disk, directory, chosen, snap)
            merged = set(chosen)
        except UnreadableSegmentError as error:
            # keep the segments: reads of the bad one fail, and a restart rebuilds the index (K19)
            snap.rebuild = True
            snap.unreadable.add(error.segment_id)
            _note(snap, str(error))
            writer = IndexSegmentWriter(snap.segment_id, snap.before.directory_id)
    if not merged or snap.rebuilt:
        for ledger_id, tail in snap.tails.items():
            writer.add_tail(ledger_id, tail)
    for ledger_id, row in snap.states.items():
        writer.set_state(ledger_id, row)
    writer.dropped.update(snap.newly_dropped)
    if not writer.empty:
        writer.write(disk, directory)
    return writer, merged


def _to_merge(config: StorageConfig, snap: CheckpointScope) -> list[int]:
    """The newest segments, if there are too many. Only segments newer than every unreadable one are chosen."""
    ids = list(snap.before.segments)
    begin = max((at + 1 for at, key in enumerate(ids) if key in snap.unreadable), default=0)
    sizes = [snap.before.segments[key] for key in ids[begin:]]
    return ids[begin + plan_merge(sizes, max(config.index_segments - begin, 2)) :]


def _merge(writer: IndexSegmentWriter, disk: Disk, directory: str, chosen: list[int], snap: CheckpointScope) -> None:
    files: list[tuple[int, File]] = []
    try:
        for key in chosen:
            path = f"{directory}/{segment_name(key)}"
            with reading_segment(key, path):
                files.append((key, disk.open(path, write=False)))
        merge_segments(writer, files, snap.tails, snap.alive)
    finally:
        for _, file in files:
            file.close()


def _note(snap: CheckpointScope, place: str) -> None:
    if place not in snap.quarantined:  # every checkpoint meets it again
        snap.quarantined.append(place)


def _dead_logs(disk: Disk, directory: str, snap: CheckpointScope) -> list[int]:
    """Finished logs of which every ledger is known to be dropped. In doubt a log stays (G1, G4)."""
    return [
        log_id
        for log_id, entry in snap.logs.items()
        if entry.finished
        and log_id not in snap.keep
        and all(owner in snap.dropped for owner in _owners(disk, directory, log_id, entry, snap))
    ]


def _owners(disk: Disk, directory: str, log_id: int, entry: ManifestLog, snap: CheckpointScope) -> set[int]:
    """The ledgers in a log; {-1}, the id of no ledger, if they cannot be read."""
    path = f"{directory}/{log_name(log_id)}"
    try:
        return set(read_usage(disk, path, log_id, entry.end))
    except CorruptionError:
        return {-1}
    except OSError as error:
        if error.errno in TRANSIENT:
            raise
        _note(snap, f"{path}: {in_words(error, beside=path)}")
        return {-1}
