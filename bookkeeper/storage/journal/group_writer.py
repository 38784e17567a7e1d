"""The journal's files: groups are made durable in them, one after the other, by one worker.

Files are zeroed once and recycled: a file the mark has passed is renamed to a spare, its header block rewritten with
the new life's id and synced, and only then renamed to its new name. A file with a journal's name therefore
always carries that file's header.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from bookkeeper.errors import check
from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.durable_file import NO_SPACE, remove_files, sync, write_zeros
from bookkeeper.storage.journal.journal_format import FileHeader
from bookkeeper.storage.journal.pending_group import PendingGroup

_SUFFIX, _SPARE = ".journal", ".spare"
LOST = ".lost"
"""Ends the names of journal files that a start has put aside because something may be missing."""


def journal_name(file_id: int) -> str:
    return f"{file_id:016x}{_SUFFIX}"


def journal_ids(disk: Disk, directory: str) -> list[int]:
    """The ids of the journal files in a directory, ascending."""
    return sorted(int(name[: -len(_SUFFIX)], 16) for name in disk.list(directory) if name.endswith(_SUFFIX))


def put_aside(disk: Disk, directory: str) -> list[str]:
    """The names of the files that a start has put aside."""
    return [name for name in disk.list(directory) if name.endswith(_SUFFIX + LOST)]


def spare_name(journal: str) -> str:
    """The name that a journal file has as a spare."""
    return f"{journal.removesuffix(_SUFFIX)}{_SPARE}"


def spare_names(disk: Disk, directory: str) -> list[str]:
    return [name for name in disk.list(directory) if name.endswith(_SPARE)]


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
        """Make a new file ready: zeroed, headed, durable, under its own name."""
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
        """A new zeroed file; its name. Also called by the checkpoint's worker.

        Past the page cache where that is possible: pages left there would have to be thrown out by each later write.
        """
        name = f"{number:016x}{_SPARE}"
        remove_files(self._disk, self._directory, [name])
        file = self._disk.open(f"{self._directory}/{name}", create=True, direct=True)
        try:
            write_zeros(file, self._file_bytes)
            sync(file)
        except OSError as error:
            file.close()
            if error.errno in NO_SPACE:  # what was written of it takes space that others need
                with suppress(OSError):
                    remove_files(self._disk, self._directory, [name])
            raise
        except BaseException:
            file.close()
            raise
        file.close()
        self._disk.sync_directory(self._directory)
        return name

    def write(self, group: PendingGroup, durable_below: int, spare: str | None) -> GroupWritten:
        """Make a group durable, in a new file if need be. May be repeated after a failure.

        Raises:
            SyncFailedError: final.
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

    def has_open(self, file_id: int) -> bool:
        """Whether this file is the open one, so that a group for it needs no new file. Asked while nothing is being
        written."""
        return file_id == self._file_id

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


def recycle(disk: Disk, directory: str, file_ids: list[int], spares: int, kept: list[str]) -> None:
    """Journal files the mark has passed become spares, as many as wanted; the others go.

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
