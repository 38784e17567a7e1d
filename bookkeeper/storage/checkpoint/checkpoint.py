"""A checkpoint: other files take over what the journal holds, in an order that survives a crash.

Sync the entry logs → write and sync an index segment → replace the manifest → recycle the journal files below the mark
and remove files that the manifest no longer names (K3, K13-K16), with those that an earlier start has put aside once
nothing is missing any more. The job runs on the checkpoint's worker, on a snapshot
that nobody changes.

Every deletion is in two index segments: once the log with its record is gone nothing else knows of it, and no entry log
could give back what one damaged segment had of it. The second list of deletions is a segment of its own, which no merge
takes in, and which is written anew when ledgers were deleted.

Unreadable old files do not stop a checkpoint. It keeps a log that it cannot read, and skips a merge with a segment that
it cannot read. The manifest names both (K27, G4).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from bookkeeper.errors import CorruptionError, in_words
from bookkeeper.ids import IdRanges
from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import NO_SPACE, TRANSIENT, remove_files, sync
from bookkeeper.storage.base.manifest import Manifest, ManifestLog, read_manifest
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
from bookkeeper.storage.index.segment_table import SegmentTable
from bookkeeper.storage.journal.group_writer import journal_ids, put_aside, recycle

SEGMENTS: Final = 2
"""Numbers of index segments that a checkpoint takes, whether it writes them or not."""


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
    resident: set[int] = field(default_factory=set)
    """Ledgers whose extents are in memory: they get new ones after a merge."""
    dropped: IdRanges = field(default_factory=IdRanges)
    logs: dict[int, ManifestLog] = field(default_factory=dict)
    """All logs, as the manifest will record them."""
    unsynced: dict[int, File] = field(default_factory=dict)
    finish: dict[int, tuple[File | None, int, Usage]] = field(default_factory=dict)
    """Full logs: file, end of records, and the ledgers in them. Without a file everything is synced."""
    remembered: set[int] = field(default_factory=set)
    """Those of them whose ledgers the manifest goes on naming."""
    new_names: bool = False
    """Whether logs were made whose names are not synced."""
    starting: bool = False
    """Whether it is a start's, for which everybody waits: segments are merged by a later one, unless there are twice as
    many as there should be."""
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
    table: SegmentTable | None
    """What the new segment knows; None: there was nothing to write."""
    extents: dict[int, list[Extent]]
    """Of the new segment, for the ledgers that are resident."""
    merged: set[int]
    """Segments that the manifest no longer names; the new one holds their places. Reads use the files until the caller
    has adopted the new one and removes them."""
    replaced: set[int]
    """All segments that the manifest no longer names."""
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
    for log_id, (log_file, end, usage) in snap.finish.items():
        _finish(disk, directory, log_file, log_id, end, usage)
        snap.logs[log_id] = ManifestLog(end, finished=True, usage=usage if log_id in snap.remembered else {})
    if snap.new_names:
        disk.sync_directory(directory)
    writer = IndexSegmentWriter(disk, directory, snap.segment_id, before.directory_id)
    try:
        merged = _fill_segment(writer, disk, directory, config, snap)
        table = None if writer.empty else writer.write()
    except OSError as error:
        _take_back(writer, error)
        raise
    finally:
        writer.close()
    gone = snap.emptied.union(_dead_logs(disk, directory, snap) if snap.collect else ())
    removed = sorted(gone)
    segments = {key: size for key, size in before.segments.items() if key not in merged}
    if table is not None:
        segments[snap.segment_id] = writer.size
    segments = _with_deletions(disk, directory, snap, segments)
    manifest = replace(
        before,
        clean=snap.clean,
        file_id=snap.file_id,
        sequence=snap.sequence,
        next_file=snap.next_file,
        next_log=snap.next_log,
        next_segment=snap.segment_id + SEGMENTS,
        logs={log_id: entry for log_id, entry in snap.logs.items() if log_id not in gone},
        segments=segments,
        rebuild=snap.rebuild,
        limbo=snap.limbo,
        quarantined=snap.quarantined,
    )
    _publish(disk, directory, snap, manifest)
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
    replaced = before.segments.keys() - segments.keys()
    return CheckpointResult(manifest, table, _extents(table, merged, snap), merged, replaced, removed, spares)


def _publish(disk: Disk, directory: str, snap: CheckpointScope, manifest: Manifest) -> None:
    snap.published = True
    try:
        manifest.write(disk, directory, snap.before)
    except OSError as error:
        snap.published = error.errno not in NO_SPACE or _is_named(disk, directory, manifest)
        raise


def _is_named(disk: Disk, directory: str, manifest: Manifest) -> bool:
    """Whether the manifest on the disk is this one, or nobody can tell."""
    try:
        found = read_manifest(disk, directory)
    except (OSError, CorruptionError):
        return True
    return found is not None and found.next_segment == manifest.next_segment


def _take_back(writer: IndexSegmentWriter, error: OSError) -> None:
    """What was written of a segment for which there is no space takes space that others need."""
    if error.errno in NO_SPACE:
        with suppress(OSError):
            writer.discard()


def _extents(table: SegmentTable | None, merged: set[int], snap: CheckpointScope) -> dict[int, list[Extent]]:
    if table is None:
        return {}
    wanted = snap.resident.intersection(table.ledger_ids()) if merged else snap.tails
    return {ledger_id: table.extents(ledger_id) for ledger_id in wanted}


def _with_deletions(disk: Disk, directory: str, snap: CheckpointScope, segments: dict[int, int]) -> dict[int, int]:
    """The segments, with a list of all deletions before them that is written anew where the old one lacks any, or would
    not be told from the others any more."""
    kept = snap.before.deletions if not snap.rebuilt else None
    others = {key: size for key, size in segments.items() if key != kept}
    if not snap.dropped or not others:
        return others
    if kept is not None and not snap.newly_dropped and kept > next(iter(others)):
        return segments
    writer = IndexSegmentWriter(disk, directory, snap.segment_id + 1, snap.before.directory_id)
    try:
        writer.dropped.update(snap.dropped)
        writer.write()
    except OSError as error:
        _take_back(writer, error)
        raise
    finally:
        writer.close()
    return {writer.segment_id: writer.size, **others}


def _finish(disk: Disk, directory: str, file: File | None, log_id: int, end: int, usage: Usage) -> None:
    if file is not None:
        return finish_log(file, log_id, end, usage)
    file = disk.open(f"{directory}/{log_name(log_id)}")
    try:
        return finish_log(file, log_id, end, usage)
    finally:
        file.close()


def _fill_segment(
    writer: IndexSegmentWriter, disk: Disk, directory: str, config: StorageConfig, snap: CheckpointScope
) -> set[int]:
    """The new tails, merged with the small segments if there are too many segments. Returns which they were."""
    merged = set(snap.before.segments) if snap.rebuilt else set()
    if not snap.rebuilt and (chosen := _to_merge(disk, config, snap)):
        try:
            _merge(writer, disk, directory, chosen, snap)
            merged = set(chosen)
        except UnreadableSegmentError as error:
            # keep the segments: reads of the bad one fail, and a restart rebuilds the index (K19)
            snap.rebuild = True
            snap.unreadable.add(error.segment_id)
            _note(snap, str(error))
            writer.discard()
    if not merged or snap.rebuilt:
        for ledger_id in sorted(snap.tails):
            writer.add_tail(ledger_id, snap.tails[ledger_id])
        for ledger_id in sorted(snap.states):
            writer.add_state(snap.states[ledger_id])
    writer.dropped.update(snap.newly_dropped)
    return merged


def _to_merge(disk: Disk, config: StorageConfig, snap: CheckpointScope) -> list[int]:
    """The newest segments, if there are too many, and their bytes fit beside them: on a full disk a checkpoint must not
    wait for space that it does not need. Only segments newer than every unreadable one are chosen."""
    ids = [key for key in snap.before.segments if key != snap.before.deletions]
    begin = max((at + 1 for at, key in enumerate(ids) if key in snap.unreadable), default=0)
    sizes = [snap.before.segments[key] for key in ids[begin:]]
    limit = config.index_segments * (2 if snap.starting else 1)
    at = plan_merge(sizes, max(limit - begin, 2))
    return ids[begin + at :] if _fits(disk, config.ledger_dir, sum(sizes[at:])) else []


def _fits(disk: Disk, directory: str, size: int) -> bool:
    try:
        return disk.space(directory).free > size
    except OSError:
        return False


def _merge(writer: IndexSegmentWriter, disk: Disk, directory: str, chosen: list[int], snap: CheckpointScope) -> None:
    files: list[tuple[int, File]] = []
    try:
        for key in chosen:
            path = f"{directory}/{segment_name(key)}"
            with reading_segment(key, path):
                files.append((key, disk.open(path, write=False)))
        merge_segments(writer, files, snap.tails, snap.states, snap.dropped)
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
    if entry.usage:
        return set(entry.usage)
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
