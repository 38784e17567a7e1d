"""The system's file system, by descriptors and offsets: no buffered file objects, no mapped files.

Errors are OSError with the path in it. Nothing here hides or retries an error of a sync: a failed sync is
final.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import stat
import threading
from collections.abc import Sequence
from typing import Final

from bookkeeper.real.private import require_own
from bookkeeper.seams import Buffer, File, Lock, Space

DIRECT_BLOCK: Final = 4096
"""Offsets, sizes and buffers of a direct file are multiples of this."""

_NO_DIRECT = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}


def _named(error: OSError, path: str) -> OSError:
    """The same error, with the path in it."""
    return OSError(error.errno, os.strerror(error.errno), path) if error.errno else error


_SCRATCH_MAX: Final = 8 * 1024 * 1024
_kept = threading.local()


def _scratch(size: int) -> memoryview:
    """Memory of this thread to read into, valid until its next call: fresh memory costs more than the read."""
    if size > _SCRATCH_MAX:
        return memoryview(bytearray(size))
    view: memoryview | None = getattr(_kept, "view", None)
    if view is None or len(view) < size:
        view = _kept.view = memoryview(bytearray(max(size, 64 * 1024)))
    return view[:size]


class PosixFile:
    """An open file. Made by :meth:`PosixDisk.open`."""

    __slots__ = ("__weakref__", "_cached_reads", "_fd", "direct", "path")

    def __init__(self, path: str, fd: int, direct: bool) -> None:
        self.path = path
        self.direct = direct
        self._fd = fd
        self._cached_reads = True

    def pwrite(self, data: Buffer, offset: int) -> None:
        view = memoryview(data).cast("B")
        try:
            written = self._pwrite(view, offset)
            while written < len(view):  # a short write is continued; an error then says so
                if written == 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                view, offset = view[written:], offset + written
                written = self._pwrite(view, offset)
        except OSError as error:
            raise _named(error, self.path) from error

    def _pwrite(self, view: memoryview, offset: int) -> int:
        """How much was written; of a direct file in whole blocks: what goes on within one is refused by the system."""
        written = os.pwrite(self._fd, view, offset)
        if not self.direct or written % DIRECT_BLOCK == 0:
            return written
        if written < DIRECT_BLOCK:  # what else keeps a disk from writing a block, without a word
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written - written % DIRECT_BLOCK

    def pread(self, size: int, offset: int) -> bytes:
        if self.direct:
            return self._pread_direct(size, offset)
        try:
            data = os.pread(self._fd, size, offset)
            if len(data) == size or not data:
                return data
            parts = [data]
            have = len(data)
            while have < size and (data := os.pread(self._fd, size - have, offset + have)):
                parts.append(data)
                have += len(data)
        except OSError as error:
            raise _named(error, self.path) from error
        return b"".join(parts)

    def pread_into(self, buffer: Buffer, offset: int) -> int:
        view = memoryview(buffer).cast("B")
        if self.direct:
            data = self._pread_direct(len(view), offset)
            view[: len(data)] = data
            return len(data)
        have = 0
        try:
            while have < len(view) and (n := os.preadv(self._fd, [view[have:]], offset + have)):
                have += n
        except OSError as error:
            raise _named(error, self.path) from error
        return have

    def pread_cached(self, size: int, offset: int) -> bytes | None:
        if self.direct or not self._cached_reads:
            return None
        buffer = _scratch(size)
        n = self.pread_cached_into(buffer, offset)
        return bytes(buffer[:n]) if n is not None else None

    def pread_cached_into(self, buffer: Buffer, offset: int) -> int | None:
        if self.direct or not self._cached_reads:
            return None
        try:
            n = os.preadv(self._fd, (buffer,), offset, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno in _NO_DIRECT:
                self._cached_reads = False  # this file system cannot tell
                return None
            raise _named(error, self.path) from error
        return n if n == len(buffer) or offset + n >= self.size() else None

    def expect(self, offset: int, size: int) -> None:
        if not self.direct:  # those are read past the page cache
            with contextlib.suppress(OSError):
                os.posix_fadvise(self._fd, offset, size, os.POSIX_FADV_WILLNEED)

    def forget(self, offset: int, size: int) -> None:
        with contextlib.suppress(OSError):
            os.posix_fadvise(self._fd, offset, size, os.POSIX_FADV_DONTNEED)

    def sync(self) -> None:
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise _named(error, self.path) from error

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise _named(error, self.path) from error

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                os.close(fd)
            except OSError as error:
                raise _named(error, self.path) from error

    def _pread_direct(self, size: int, offset: int) -> bytes:
        """Through an aligned buffer of our own, past the page cache."""
        start = offset - offset % DIRECT_BLOCK
        length = -(-(offset + size - start) // DIRECT_BLOCK) * DIRECT_BLOCK
        if size <= 0:
            return b""
        with mmap.mmap(-1, length) as aligned, memoryview(aligned) as view:
            have = 0
            try:
                while have < length:
                    n = os.preadv(self._fd, [view[have:]], start + have)
                    have += n
                    if n == 0 or n % DIRECT_BLOCK:  # the end of the file
                        break
            except OSError as error:
                raise _named(error, self.path) from error
            return bytes(view[offset - start : min(have, offset - start + size)])


def is_open_file(fd: int, path: str) -> bool:
    """Whether a path leads to the file that is open as ``fd``."""
    try:
        return fd >= 0 and os.path.samestat(os.fstat(fd), os.stat(path))
    except OSError:
        return False


class PosixLock:
    """An flock on a file, released by the kernel when the process ends."""

    __slots__ = ("_fd", "_path")

    def __init__(self, fd: int, path: str) -> None:
        self._fd, self._path = fd, path

    @property
    def in_force(self) -> bool:
        return is_open_file(self._fd, self._path)

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


_KINDS: Final = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class PosixDisk:
    """The file system of this machine. New files are 0600, new directories 0700."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False, write: bool = True, direct: bool = False) -> File:
        flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC | os.O_NOFOLLOW
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        if direct:
            try:
                return PosixFile(path, os.open(path, flags | os.O_DIRECT | os.O_DSYNC, 0o600), direct=True)
            except OSError as error:
                if error.errno not in _NO_DIRECT:
                    raise
                if create:  # some kernels create the file and refuse the flag afterwards
                    flags &= ~os.O_EXCL
        return PosixFile(path, os.open(path, flags, 0o600), direct=False)

    def read_file(self, path: str) -> bytes:
        file = self.open(path, write=False)
        try:
            return file.pread(file.size(), 0)
        finally:
            file.close()

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def list(self, path: str) -> Sequence[str]:
        return sorted(os.listdir(path))

    def make_directories(self, path: str) -> None:
        missing, wanted = [], path
        while path and not self.exists(path):
            missing.append(path)
            path = os.path.dirname(path)
        for directory in reversed(missing):
            try:
                os.mkdir(directory, 0o700)
            except FileExistsError:
                pass
            self.sync_directory(os.path.dirname(directory) or ".")
        require_own(wanted)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_private(self, path: str) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe has no other end
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, "it is a symbolic link, and not a file", path) from error
            raise
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                kind = next((name for is_one, name in _KINDS if is_one(found.st_mode)), "something else")
                raise OSError(errno.EINVAL, f"it is {kind}, and not a file", path)
            if found.st_uid not in (os.geteuid(), 0):
                raise PermissionError(errno.EPERM, f"it belongs to another user (number {found.st_uid})", path)
            if stat.S_IMODE(found.st_mode) != 0o600:
                os.fchmod(fd, 0o600)
        finally:
            os.close(fd)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            raise _named(error, path) from error
        finally:
            os.close(fd)

    def space(self, path: str) -> Space:
        numbers = os.statvfs(path)
        return Space(total=numbers.f_blocks * numbers.f_frsize, free=numbers.f_bavail * numbers.f_frsize)

    def lock(self, path: str) -> Lock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise BlockingIOError(errno.EAGAIN, "another process holds this lock", path) from None
        except BaseException:
            os.close(fd)
            raise
        return PosixLock(fd, path)
