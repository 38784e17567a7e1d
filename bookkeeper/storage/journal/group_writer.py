"""The journal: groups are collected on the loop's thread and made durable, one after the other, by one worker.

A group is collected in an aligned buffer with room for its header: the buffer is written to the journal, synced, and
the same bytes (without header and padding) then go to the entry log, unsynced.

Files are zeroed once and recycled: a file the mark has passed is renamed to a spare, its header block rewritten with
the new life's id and synced, and only then renamed to its new name (K11, K12). A file with a journal's name therefore
always carries that file's header.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Callable
from dataclasses import dataclass

from bookkeeper.codec import chain_crcs, record_places
from bookkeeper.errors import check
from bookkeeper.seams import Buffer, Disk, File
from bookkeeper.storage.durable_file import BLOCK, remove_files, sync, write_zeros
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter, Usage
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, FileHeader, GroupHeader, padded

_SUFFIX, _SPARE = ".journal", ".spare"
_PADDING = memoryview(bytes(BLOCK))


def journal_name(file_id: int) -> str:
    return f"{file_id:016x}{_SUFFIX}"


def journal_ids(disk: Disk, directory: str) -> list[int]:
    """The ids of the journal files in a directory, ascending."""
    return sorted(int(name[: -len(_SUFFIX)], 16) for name in disk.list(directory) if name.endswith(_SUFFIX))


def spare_names(disk: Disk, directory: str) -> list[str]:
    return [name for name in disk.list(directory) if name.endswith(_SPARE)]


class GroupBuffer:
    """Page-aligned memory with a view on it, re-used from group to group."""

    __slots__ = ("capacity", "memory", "view")

    def __init__(self, capacity: int) -> None:
        self.capacity = -(-capacity // BLOCK) * BLOCK
        self.memory = mmap.mmap(-1, self.capacity)  # anonymous: only a way to aligned memory (P1 is about files)
        self.view = memoryview(self.memory)


class PendingGroup:
    """Records on their way: collected, then written. Readable all the time."""

    __slots__ = (
        "buffer",
        "file_id",
        "file_offset",
        "flags",
        "followers",
        "header",
        "log_id",
        "log_offset",
        "records",
        "seconds",
        "sequence",
        "usage",
        "used",
        "waiters",
    )

    def __init__(self, buffer: GroupBuffer, log_id: int, log_offset: int) -> None:
        self.buffer = buffer
        self.used = GROUP_HEADER
        self.records = 0
        self.log_id, self.log_offset = log_id, log_offset
        """Where the first record will lie."""
        self.sequence = self.file_id = self.file_offset = self.flags = 0
        """Set when it is handed to the journal."""
        self.header: bytes | None = None
        self.waiters: list[Callable[[BaseException | None], None]] = []
        """Who is called when it is durable."""
        self.followers: list[Callable[[BaseException | None], None]] = []
        """Who is called when it is in the entry log, too."""
        self.seconds = 0.0
        """What its writes took."""
        self.usage: Usage = {}

    @property
    def size(self) -> int:
        """Bytes of records."""
        return self.used - GROUP_HEADER

    @property
    def data(self) -> memoryview:
        """The records."""
        return self.buffer.view[GROUP_HEADER : self.used]

    def room_for(self, size: int) -> bool:
        return self.used + size <= self.buffer.capacity

    def add_run(self, ledger_id: int, records: Buffer, begin: int, ends: array[int], i0: int, i1: int) -> array[int]:
        """Take the records ``i0 .. i1 - 1``, which begin at ``begin`` in ``records``.

        Returns:
            their places (array('q')).
        """
        end, at = ends[i1 - 1], self.used
        self.used = at + end - begin
        self.buffer.view[at : self.used] = memoryview(records)[begin:end]
        self.records += i1 - i0
        self._count(ledger_id, end - begin, i1 - i0)
        base = place(self.log_id, self.log_offset + at - GROUP_HEADER)
        return record_places(ends, i0, i1, begin, base - begin)

    def add_record(self, ledger_id: int, data: bytes) -> int:
        """Take one whole record; its place."""
        at, self.used = self.used, self.used + len(data)
        self.buffer.view[at : self.used] = data
        self.records += 1
        self._count(ledger_id, len(data), 1)
        return place(self.log_id, self.log_offset + at - GROUP_HEADER)

    def _count(self, ledger_id: int, size: int, records: int) -> None:
        if (row := self.usage.get(ledger_id)) is None:
            self.usage[ledger_id] = [size, records]
        else:
            row[0] += size
            row[1] += records

    def holds(self, log_id: int, offset: int) -> bool:
        return log_id == self.log_id and self.log_offset <= offset < self.log_offset + self.size

    def bytes_from(self, offset: int) -> memoryview:
        """From a record at ``offset`` of the log on. Valid until the loop's next turn."""
        return self.buffer.view[GROUP_HEADER + offset - self.log_offset : self.used]

    def seal(self, sequence: int, durable_below: int) -> int:
        """Write header and padding into the buffer; how many bytes to write. Idempotent: a retry writes the same."""
        size = padded(self.size)
        if self.header is None:
            chain = chain_crcs(self.buffer.view, GROUP_HEADER, self.used)
            header = GroupHeader(
                self.flags, self.file_id, sequence, self.file_offset, durable_below, self.records, self.size, chain
            )
            self.header = header.encode()
            self.buffer.view[:GROUP_HEADER] = self.header
            self.buffer.view[self.used : size] = _PADDING[: size - self.used]
        return size


@dataclass(slots=True)
class GroupWritten:
    """What a job of the journal's worker reports."""

    spare_used: str | None = None
    seconds: float = 0.0
    """What it took; 0 without a clock."""


class GroupWriter:
    """Writes groups. Owned by the journal's worker (before there is one: by the start)."""

    def __init__(self, disk: Disk, directory: str, file_bytes: int, directory_id: int, boot: int) -> None:
        self._disk, self._directory = disk, directory
        self._file_bytes = file_bytes
        self._directory_id, self._boot = directory_id, boot
        self._file: File | None = None
        self._file_id = 0

    def begin_file(self, file_id: int, first_sequence: int, spare: str | None) -> None:
        """Make a new file ready: zeroed, headed, durable, under its own name (K1, K11, K12)."""
        check(file_id > self._file_id, "K10", f"journal file {file_id} after {self._file_id}")
        if spare is None or not self._disk.exists(f"{self._directory}/{spare}"):  # the latter: a try before this one
            spare = self.make_spare(file_id)
        path = f"{self._directory}/{spare}"
        file = self._disk.open(path)
        try:
            file.pwrite(FileHeader(file_id, first_sequence, self._directory_id, self._boot).encode(), 0)
            sync(file)
        finally:
            file.close()
        name = f"{self._directory}/{journal_name(file_id)}"
        self._disk.rename(path, name)
        self._disk.sync_directory(self._directory)
        if self._file is not None:
            self._file.close()
        self._file = self._disk.open(name, direct=True)
        self._file_id = file_id

    def make_spare(self, number: int) -> str:
        """A new zeroed file (K11); its name. Also called by the checkpoint's worker.

        Past the page cache where that is possible: pages left there would have to be thrown out by each later write.
        """
        name = f"{number:016x}{_SPARE}"
        remove_files(self._disk, self._directory, [name])
        file = self._disk.open(f"{self._directory}/{name}", create=True, direct=True)
        try:
            write_zeros(file, self._file_bytes)
            sync(file)
        finally:
            file.close()
        self._disk.sync_directory(self._directory)
        return name

    def write(self, group: PendingGroup, durable_below: int, spare: str | None) -> GroupWritten:
        """Make a group durable, in a new file if need be. May be repeated after a failure.

        Raises:
            SyncFailedError: final (K23).
            OSError: ENOSPC and the like: may be repeated. Others: final.
        """
        written = GroupWritten()
        if group.file_id != self._file_id:
            self.begin_file(group.file_id, group.sequence, spare)
            written.spare_used = spare
        self.make_durable(group, durable_below)
        return written

    def make_durable(self, group: PendingGroup, durable_below: int) -> None:
        """The same for a group whose file is open."""
        file = self._file
        assert file is not None
        size = group.seal(group.sequence, durable_below)
        file.pwrite(group.buffer.view[:size], group.file_offset)
        if not file.direct:
            sync(file)

    def holds(self, group: PendingGroup, logs: EntryLogWriter) -> bool:
        """The files ``group`` goes to are open: nothing is to be made. Asked while no write is under way."""
        return group.file_id == self._file_id and group.log_id == logs.log_id

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def recycle(disk: Disk, directory: str, file_ids: list[int], spares: int, kept: list[str]) -> None:
    """Journal files the mark has passed become spares, as many as wanted; the others go (K13, K12).

    Args:
        kept: the names of the new spares are added to it, also if this ends in an error.
    """
    for file_id in file_ids:
        name = f"{directory}/{journal_name(file_id)}"
        if not disk.exists(name):
            continue
        if len(kept) < spares:
            spare = f"{file_id:016x}{_SPARE}"
            disk.rename(name, f"{directory}/{spare}")
            kept.append(spare)
        else:
            disk.unlink(name)
    if file_ids:
        disk.sync_directory(directory)
