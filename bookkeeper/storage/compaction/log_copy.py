"""The files of a compaction: reads and verifies the source, writes and syncs the target. Blocks; runs on one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bookkeeper.codec import RECORD_HEADER, scan_records
from bookkeeper.codec.shapes import RECORD_MAX, Stop
from bookkeeper.errors import CorruptionError
from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.durable_file import remove_files, sync
from bookkeeper.storage.compaction.chunk import Chunk, LedgerRecords
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter, Usage, check_header, log_name
from bookkeeper.storage.index.moved_entries import MovedEntries

CHUNK = 256 * 1024
"""Bytes that are read at once: between two of them others have their turn."""


@dataclass(slots=True)
class CopiedRecords:
    """What was written to the target."""

    size: int
    moves: list[MovedEntries]
    usage: Usage


class CompactionFiles:
    """One source at a time, and one target."""

    def __init__(self, disk: Disk, directory: str, directory_id: int, boot: int, sync_bytes: int) -> None:
        """
        Args:
            sync_bytes: the target is synced after so many bytes; 0: only by :meth:`sync`.
        """
        self._disk, self._directory, self._sync_bytes = disk, directory, sync_bytes
        self._writer = EntryLogWriter(disk, directory, directory_id, boot)
        self._source: File | None = None
        self._target: File | None = None
        self._unsynced = 0

    # -- the source ---------------------------------------------------------------------------------------

    def open_source(self, log_id: int) -> None:
        """Open a log for reading; its descriptor stays good when the log is removed.

        Raises:
            CorruptionError: its header is damaged. OSError: it cannot be opened.
        """
        self.close_source()
        self._source = self._disk.open(f"{self._directory}/{log_name(log_id)}", write=False)
        check_header(self._source, log_id)

    def read(self, log_id: int, at: int, end: int) -> Chunk:
        """The next records of the source, verified.

        Args:
            at: where a record begins, below ``end``, where the last one ends.

        Raises:
            CorruptionError: the record there is damaged; the error names the place.
        """
        file, size = self._source, CHUNK
        assert file is not None
        while True:
            data = file.pread(min(size, end - at), at)
            scan = scan_records(data, 0, len(data))
            if scan.offsets:
                file.forget(at, scan.next)
                return Chunk(data, at, log_id, scan)
            whole = at + len(data) >= end or len(data) < min(size, end - at)
            if scan.stop is not Stop.PARTIAL or whole or size >= 2 * RECORD_MAX:
                raise CorruptionError(f"{file.path} is damaged at byte {at}")
            size = max(2 * size, RECORD_HEADER + int.from_bytes(data[:4], "big"))

    def close_source(self) -> None:
        """Close the source, if one is open."""
        source, self._source = self._source, None
        if source is not None:
            source.close()

    # -- the target ---------------------------------------------------------------------------------------

    def write(
        self, log_id: int, offset: int, chunk: Chunk, parts: Sequence[LedgerRecords], states: Sequence[int]
    ) -> CopiedRecords:
        """Copy these records of a chunk to ``offset`` of the target, which is made if need be.

        Raises:
            OSError: no space, among others: it may be repeated.
            SyncFailedError: what was written is lost.
        """
        data, moves, usage = chunk.copy(parts, states, log_id, offset)
        if data:
            if (created := self._writer.write(log_id, data, offset)) is not None:
                self._target, self._unsynced = created, 0
            self._unsynced += len(data)
            if 0 < self._sync_bytes <= self._unsynced:
                self.sync()
        return CopiedRecords(len(data), moves, usage)

    def sync(self) -> None:
        """Make everything that was written to the target durable."""
        assert self._target is not None
        sync(self._target)
        self._unsynced = 0

    def hand_over(self) -> File:
        """The target, which others close."""
        target, self._target = self._target, None
        assert target is not None
        return target

    def discard(self, log_id: int) -> None:
        """Remove a target of which nothing is needed, if there is one."""
        target, self._target = self._target, None
        if target is not None:
            target.close()
        remove_files(self._disk, self._directory, [log_name(log_id)])

    def close(self) -> None:
        """Close what is open."""
        self.close_source()
        target, self._target = self._target, None
        if target is not None:
            target.close()
