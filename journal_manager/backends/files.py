"""The file system that the file backend needs, as a protocol, and its binding to the system.

The protocol is a part of the one that bookies use for their disks, so their simulated disk can be used here, too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from bookkeeper.real import is_open_file, require_own
from journal_manager.errors import check


class OpenFile(Protocol):
    """An open file, read and written at offsets."""

    def pwrite(self, data: bytes, offset: int) -> None: ...
    def pread(self, size: int, offset: int) -> bytes: ...
    def sync(self) -> None: ...
    def size(self) -> int: ...
    def truncate(self, size: int) -> None: ...
    def close(self) -> None: ...


class HeldLock(Protocol):
    @property
    def in_force(self) -> bool:
        """Whether it keeps others out: once its file is removed or replaced, others lock the next one."""

    def release(self) -> None: ...


class Files(Protocol):
    """A file system: synchronous. Errors are OSError."""

    def open(self, path: str, *, create: bool = False, write: bool = True) -> OpenFile:
        """``create`` makes a new file and refuses an existing one (FileExistsError)."""

    def read_file(self, path: str) -> bytes: ...
    def exists(self, path: str) -> bool: ...
    def list(self, path: str) -> Sequence[str]: ...
    def make_directories(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def lock(self, path: str) -> HeldLock:
        """Take an exclusive lock. Raises BlockingIOError: another process holds it."""


class SystemFile:
    """An open file of the system."""

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        self._fd: int = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def pwrite(self, data: bytes, offset: int) -> None:
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._fd, rest, offset)
            offset, rest = offset + written, rest[written:]

    def pread(self, size: int, offset: int) -> bytes:
        parts: list[bytes] = []
        while size > 0 and (part := os.pread(self._fd, size, offset)):
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return b"".join(parts)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


class SystemLock:
    """flock on a file; the kernel releases it when the process ends."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self.in_force:  # its file was removed in between, and may be another one now
                raise BlockingIOError(errno.EAGAIN, "the lock's file has just been removed", path)
            if os.fstat(self._fd).st_mode & 0o077:
                _make_private(path)
        except BaseException:
            os.close(self._fd)
            raise

    @property
    def in_force(self) -> bool:
        return is_open_file(self._fd, self._path)

    def release(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def _make_private(lock: str) -> None:
    """Make a directory of an earlier version private, whose files others could read. The lock file comes last, because
    its mode shows whether this was done."""
    directory = os.path.dirname(lock)
    names = sorted(os.listdir(directory), key=lambda name: name == os.path.basename(lock))
    for path in (os.path.join(directory, name) for name in names):
        found = os.stat(path, follow_symlinks=False)
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
            os.chmod(path, stat.S_IMODE(found.st_mode) & stat.S_IRWXU)


class SystemFiles:
    """The operating system's files. New files are 0600, new directories 0700."""

    def open(self, path: str, *, create: bool = False, write: bool = True) -> OpenFile:
        flags = os.O_RDWR if write else os.O_RDONLY
        return SystemFile(path, flags | (os.O_CREAT | os.O_EXCL if create else 0))

    def read_file(self, path: str) -> bytes:
        file = SystemFile(path, os.O_RDONLY)
        try:
            return file.pread(file.size(), 0)
        finally:
            file.close()

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list(self, path: str) -> Sequence[str]:
        return sorted(os.listdir(path))

    def make_directories(self, path: str) -> None:
        self._make(path)
        require_own(path)

    def _make(self, path: str) -> None:
        parent = os.path.dirname(path)
        if os.path.isdir(path):
            return
        check(parent != path, "K1", path)
        self._make(parent)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        self.sync_directory(parent)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> HeldLock:
        return SystemLock(path)
