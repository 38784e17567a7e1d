"""A disk by seed: what was not synced may be lost or torn when its node crashes.

Every file has what a reader sees (volatile) and what survives (durable). A write goes to the volatile side at once
and is *pending* for the durable one until the file is synced; a crash keeps any subset of the pending writes,
each possibly torn at 512 bytes. Creating, renaming and unlinking are pending until their directory is
synced. That is all POSIX promises, and so all we rely on.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from bookkeeper.seams import Buffer, Lock, Space

SECTOR: Final = 512
"""Bytes that are written whole or not at all."""


class NodeCrashed(BaseException):  # not an error: the machine stops here
    """Raised inside a disk operation at which a node's process ends."""


@dataclass(slots=True, eq=False)
class _Inode:
    volatile: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """(offset, data) not yet durable; data None: truncate to offset."""


@dataclass(slots=True, eq=False)
class _Directory:
    names: dict[str, _Inode] = field(default_factory=dict)
    durable: dict[str, _Inode] = field(default_factory=dict)
    pending: list[tuple[str, str, _Inode]] = field(default_factory=list)
    """("link" | "unlink", name, inode), in order."""
    synced: bool = False
    """The directory itself survives: its parent was synced after it was made."""


@dataclass(slots=True, kw_only=True)
class Fault:
    """An error that some operations meet."""

    operation: str
    """open, pwrite, pread, sync, truncate, close, rename, unlink, sync_directory, list, make_directories; * for any."""
    code: int
    """errno."""
    path: str = ""
    """Only paths that contain this."""
    after: int = 0
    """Let so many matching operations pass first."""
    times: int = 1 << 60
    """How many operations fail."""
    partial: bool = False
    """A failing pwrite has written a part."""


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class SimFile:
    """See :class:`bookkeeper.seams.File`."""

    def __init__(self, disk: SimDisk, path: str, inode: _Inode, direct: bool, writable: bool) -> None:
        self.path = path
        self.direct = direct
        self._disk = disk
        self._inode = inode
        self._writable = writable
        self._open = True
        self._life = disk.life

    def pwrite(self, data: Buffer, offset: int) -> None:
        content = bytes(data)
        if self.direct and (len(content) % 4096 or offset % 4096):
            raise OSError(errno.EINVAL, "unaligned direct write", self.path)
        inode = self._check("pwrite", write=True, data=content, offset=offset)
        grows = offset + len(content) - len(inode.volatile)
        if grows > 0 and not self._disk.has_room(self.path, grows):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        _apply(inode.volatile, offset, content)
        if self.direct:
            self._disk.wait(self._disk.sync_s)
            _apply(inode.durable, offset, content)
        else:
            inode.pending.append((offset, content))

    def pread(self, size: int, offset: int) -> bytes:
        return bytes(self._check("pread").volatile[offset : offset + size])

    def pread_into(self, buffer: Buffer, offset: int) -> int:
        view = memoryview(buffer).cast("B")
        data = self.pread(len(view), offset)
        view[: len(data)] = data
        return len(data)

    def pread_cached(self, size: int, offset: int) -> bytes | None:
        if self._disk.rng.random() < self._disk.cold_share:
            return None
        return self.pread(size, offset)

    def pread_cached_into(self, buffer: Buffer, offset: int) -> int | None:
        return None if self._disk.rng.random() < self._disk.cold_share else self.pread_into(buffer, offset)

    def expect(self, offset: int, size: int) -> None:
        pass

    def forget(self, offset: int, size: int) -> None:
        pass

    def sync(self) -> None:
        disk = self._disk
        disk.wait(disk.sync_s + (disk.slow_sync_s if disk.rng.random() < disk.slow_sync_share else 0.0))
        try:
            inode = self._check("sync")
        except OSError:
            self._inode.pending.clear()  # the kernel marks the pages clean: a later sync "succeeds" (K23)
            raise
        for offset, data in inode.pending:
            _apply(inode.durable, offset, data)
        inode.pending.clear()

    def size(self) -> int:
        return len(self._check("size").volatile)

    def truncate(self, size: int) -> None:
        inode = self._check("truncate", write=True)
        _apply(inode.volatile, size, None)
        inode.pending.append((size, None))

    def close(self) -> None:
        if self._open:
            self._open = False
            self._disk.operation("close", self.path)

    def _check(self, operation: str, *, write: bool = False, data: bytes = b"", offset: int = 0) -> _Inode:
        if not self._open or self._life != self._disk.life:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        if write and not self._writable:
            raise OSError(errno.EBADF, "opened for reading", self.path)

        def tear(share: float) -> None:
            """Only a part of ``data`` gets written, whole sectors of it."""
            if data:
                part = data[: int(len(data) * share) // SECTOR * SECTOR]
                _apply(self._inode.volatile, offset, part)
                self._inode.pending.append((offset, part))

        self._disk.operation(operation, self.path, tear)
        return self._inode


class _SimLock:
    def __init__(self, disk: SimDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    @property
    def in_force(self) -> bool:
        return self._path in self._disk.locks and self._disk.exists(self._path)

    def release(self) -> None:
        self._disk.locks.discard(self._path)


class SimDisk:
    """One node's file system; survives the node's crashes. See the module, and :class:`bookkeeper.seams.Disk`."""

    def __init__(self, rng: Random, note: Callable[..., None] = lambda *details: None) -> None:
        self.rng = rng
        self.note = note
        self.capacity = 1 << 40
        """Bytes."""
        self.direct = True
        """Does this file system know O_DIRECT?"""
        self.sync_s = 0.0001
        """Virtual seconds a sync takes, when a worker does it."""
        self.slow_sync_share = 0.0
        self.slow_sync_s = 0.5
        self.cold_share = 0.0
        """Share of cached reads that would have to wait."""
        self.faults: list[Fault] = []
        self.locks: set[str] = set()
        self.life = 0
        """Counts crashes: descriptors of an earlier life are dead."""
        self.operations = 0
        self.waited = 0.0
        """Seconds the operations of the running job have taken."""
        self._directories: dict[str, _Directory] = {"/": _Directory(synced=True)}
        self._stop_after: int | None = None

    # -- faults -------------------------------------------------------------------------------------------

    def operation(self, name: str, path: str, tear: Callable[[float], None] = lambda share: None) -> None:
        """Count one operation and let it fail if a fault or a crash is due."""
        self.operations += 1
        self.note("disk", name, posixpath.basename(path))
        if self._stop_after is not None:
            if self._stop_after <= 0:
                tear(self.rng.random())
                raise NodeCrashed
            self._stop_after -= 1
        for fault in self.faults:
            if fault.operation in (name, "*") and fault.path in path and fault.times > 0:
                if fault.after > 0:
                    fault.after -= 1
                    continue
                fault.times -= 1
                if fault.partial:
                    tear(self.rng.random())
                raise OSError(fault.code, os.strerror(fault.code), path)

    def wait(self, seconds: float) -> None:
        self.waited += seconds

    def die_after(self, operations: int) -> None:
        """The process ends at the operation after so many: NodeCrashed is raised there and by all later ones."""
        self._stop_after = operations

    def crash(self, *, keep: float | None = None) -> None:
        """Power is lost: each pending change survives by chance (``keep``: with this probability)."""
        share_of = self._survival(keep)
        for path in sorted(self._directories):
            directory, share = self._directories[path], share_of(path)
            for kind, name, inode in directory.pending:
                if self.rng.random() < share:
                    self._link(directory.durable, kind, name, inode)
            directory.pending.clear()
        inodes: dict[int, tuple[_Inode, float]] = {}
        for path in sorted(self._directories):
            for name in sorted(self._directories[path].durable):
                inode = self._directories[path].durable[name]
                inodes.setdefault(id(inode), (inode, share_of(path)))
        for inode, share in inodes.values():
            for offset, data in inode.pending:
                if self.rng.random() >= share:
                    continue
                if data and self.rng.random() < 0.3:
                    data = self._torn(inode.durable, offset, data)
                _apply(inode.durable, offset, data)
            inode.pending.clear()
            inode.volatile = bytearray(inode.durable)
        for directory in self._directories.values():
            directory.names = dict(directory.durable)
        self._directories = {
            path: d for path, d in self._directories.items() if d.synced or self.rng.random() < share_of(path)
        }
        for path in list(self._directories):  # a directory whose parent is gone is gone
            if any(parent not in self._directories for parent in _parents(path)):
                del self._directories[path]
        self._new_life()

    def _survival(self, keep: float | None) -> Callable[[str], float]:
        """With which probability a pending change survives, by the directory it is in."""
        share = self.rng.choice([0.0, 0.5, 0.9, 1.0]) if keep is None else keep
        return lambda path: share

    def process_died(self) -> None:
        """Only the process ended (kill -9): the system goes on and nothing that was written is lost."""
        self._new_life()

    def _new_life(self) -> None:
        self.life += 1
        self.locks.clear()
        self._stop_after = None

    def _torn(self, before: bytearray, offset: int, data: bytes) -> bytes:
        """Some sectors of ``data`` are new, the others as they were."""
        torn = bytearray(data)
        for at in range(0, len(data), SECTOR):
            if self.rng.random() < 0.5:
                old = bytes(before[offset + at : offset + at + SECTOR]).ljust(SECTOR, b"\0")
                torn[at : at + SECTOR] = old[: len(torn[at : at + SECTOR])]
        return bytes(torn)

    @staticmethod
    def _link(names: dict[str, _Inode], kind: str, name: str, inode: _Inode) -> None:
        if kind == "link":
            names[name] = inode
        elif names.get(name) is inode:
            del names[name]

    # -- Disk ---------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False, write: bool = True, direct: bool = False) -> SimFile:
        self.operation("open", path)
        directory, name = self._place(path)
        inode = directory.names.get(name)
        if create:
            if inode is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            inode = directory.names[name] = _Inode()
            directory.pending.append(("link", name, inode))
        elif inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return SimFile(self, path, inode, direct and self.direct, write)

    def read_file(self, path: str) -> bytes:
        file = self.open(path, write=False)
        return file.pread(file.size(), 0)

    def exists(self, path: str) -> bool:
        path = posixpath.normpath(path)
        if path in self._directories:
            return True
        parent = self._directories.get(posixpath.dirname(path))
        return parent is not None and posixpath.basename(path) in parent.names

    def list(self, path: str) -> Sequence[str]:
        self.operation("list", path)
        path = posixpath.normpath(path)
        below = [posixpath.basename(d) for d in self._directories if d != "/" and posixpath.dirname(d) == path]
        return sorted([*self._directory(path).names, *below])

    def make_directories(self, path: str) -> None:
        self.operation("make_directories", path)
        path = posixpath.normpath(path)
        for directory in [*reversed(_parents(path)), path]:
            self._directories.setdefault(directory, _Directory()).synced = True

    def rename(self, source: str, target: str) -> None:
        self.operation("rename", target)
        from_directory, from_name = self._place(source)
        to_directory, to_name = self._place(target)
        inode = from_directory.names.pop(from_name, None)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        to_directory.names[to_name] = inode
        to_directory.pending.append(("link", to_name, inode))
        from_directory.pending.append(("unlink", from_name, inode))

    def unlink(self, path: str) -> None:
        self.operation("unlink", path)
        directory, name = self._place(path)
        inode = directory.names.pop(name, None)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        directory.pending.append(("unlink", name, inode))

    def sync_directory(self, path: str) -> None:
        self.wait(self.sync_s)
        self.operation("sync_directory", path)
        directory = self._directory(path)
        for kind, name, inode in directory.pending:
            self._link(directory.durable, kind, name, inode)
        directory.pending.clear()

    def make_private(self, path: str) -> None:
        """Every file here is its owner's alone."""
        if not self.exists(path):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)

    def has_room(self, path: str, grows: int) -> bool:
        """Whether a file may become so many bytes longer."""
        return self.used() + grows <= self.capacity

    def space(self, path: str) -> Space:
        self.operation("space", path)
        return Space(total=self.capacity, free=max(0, self.capacity - self.used()))

    def lock(self, path: str) -> Lock:
        if path in self.locks:
            raise BlockingIOError(errno.EAGAIN, "another process holds this lock", path)
        if not self.exists(path):
            self.open(path, create=True)
        self.locks.add(path)
        return _SimLock(self, path)

    def used(self) -> int:
        """Bytes of all files."""
        return sum(len(inode.volatile) for d in self._directories.values() for inode in d.names.values())

    # -- for tests ----------------------------------------------------------------------------------------

    def flip_bit(self, path: str, bit: int) -> None:
        """Damage a stored byte, as a worn disk does (F8)."""
        directory, name = self._place(path)
        for content in (directory.names[name].volatile, directory.names[name].durable):
            if bit // 8 < len(content):
                content[bit // 8] ^= 1 << bit % 8

    def files(self) -> dict[str, bytes]:
        """Every file by its path, as a reader sees it."""
        return {
            posixpath.join(path, name): bytes(inode.volatile)
            for path, directory in sorted(self._directories.items())
            for name, inode in sorted(directory.names.items())
        }

    def surviving(self, path: str) -> bytes | None:
        """What a power cut leaves of a file for certain; None: nothing."""
        directory, name = self._place(path)
        inode = directory.durable.get(name)
        return None if inode is None else bytes(inode.durable)

    def replace(self, changes: Mapping[str, bytes | None]) -> None:
        """Put other files in the place of these, durably; None: none. Only while nobody runs here: who has one of them
        open keeps it."""
        for path, content in changes.items():
            directory, name = self._place(path)
            directory.pending = [row for row in directory.pending if row[1] != name]
            if content is None:
                directory.names.pop(name, None)
                directory.durable.pop(name, None)
            else:
                directory.names[name] = directory.durable[name] = _Inode(bytearray(content), bytearray(content))

    def _directory(self, path: str) -> _Directory:
        directory = self._directories.get(posixpath.normpath(path))
        if directory is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return directory

    def _place(self, path: str) -> tuple[_Directory, str]:
        path = posixpath.normpath(path)
        return self._directory(posixpath.dirname(path)), posixpath.basename(path)


def _parents(path: str) -> list[str]:
    """All directories above an absolute path, nearest first."""
    parents = []
    while path not in ("/", ""):
        path = posixpath.dirname(path)
        parents.append(path)
    return parents
