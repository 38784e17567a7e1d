"""Makes and replaces files so that a crash leaves the old one, the new one, or none (K1-K3), with the stamp that every
file of a bookie has.

    stamp    magic: 4 bytes | version: u16 | flags: u16 = 0 | length: u32 | crc: u32 | body: length bytes

``crc`` is CRC32C over the twelve bytes before it and the body. The layout of the stamp itself never changes, so the
crc is checked before the version is believed: a flipped bit is damage, another version is a sentence for the operator.
"""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from posixpath import dirname
from struct import Struct
from weakref import WeakSet

from bookkeeper.codec import crc32c
from bookkeeper.errors import CorruptionError, StorageError, UnsupportedFormatError, in_words
from bookkeeper.seams import Buffer, Disk, File

BLOCK = 4096
"""The unit of direct I/O."""

_ZEROS = 4 << 20

_HEAD = Struct(">4sHHI")
_CRC = Struct(">I")
STAMP_SIZE = _HEAD.size + _CRC.size

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""The disk has no space now (K26)."""

TRANSIENT = NO_SPACE | {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Nothing is lost: refuse, and try again later (K26, K28)."""


class SyncFailedError(StorageError):
    """A sync failed. What was written to the file since the last sync is lost, whatever a retry returns (K23)."""


def stamp(magic: bytes, version: int, body: bytes, *, pad_to: int = 0) -> bytes:
    """``body`` with its stamp before it, padded with zeros to at least ``pad_to`` bytes."""
    head = _HEAD.pack(magic, version, 0, len(body))
    whole = head + _CRC.pack(crc32c(body, crc32c(head))) + body
    return whole.ljust(pad_to, b"\0")


def unstamp(data: Buffer, magic: bytes, version: int, what: str) -> bytes:
    """The body of what :func:`stamp` made.

    Raises:
        CorruptionError: ``what`` is damaged, cut short, or another file.
        UnsupportedFormatError: it is intact, but of a version that this program does not read.
    """
    view = memoryview(data)
    if len(view) < STAMP_SIZE:
        raise CorruptionError(f"{what} is damaged: it has only {len(view)} bytes")
    found, has, _, length = _HEAD.unpack_from(view)
    (crc,) = _CRC.unpack_from(view, _HEAD.size)
    if found != magic:
        raise CorruptionError(
            f"{what} is damaged, or another file: it begins with {bytes(found)!r}, not with {magic!r}"
        )
    if STAMP_SIZE + length > len(view):
        raise CorruptionError(
            f"{what} is damaged: it should have {STAMP_SIZE + length} bytes, and {len(view)} are there"
        )
    body = bytes(view[STAMP_SIZE : STAMP_SIZE + length])
    if crc32c(body, crc32c(bytes(view[: _HEAD.size]))) != crc:
        raise CorruptionError(f"{what} is damaged: its checksum does not match")
    if has != version:
        raise UnsupportedFormatError(f"{what} is of version {has}; this program reads version {version}")
    return body


def version_of(data: Buffer, known: Sequence[int]) -> int:
    """The version in a stamp, if it is one of ``known``; else the last of them, so that :func:`unstamp` says what is
    wrong."""
    version = int(_HEAD.unpack_from(data)[1]) if len(data) >= STAMP_SIZE else known[-1]
    return version if version in known else known[-1]


_lost: WeakSet[File] = WeakSet()
"""Files with a failed sync. The system reports the failure once, and then takes the pages for clean. The next sync of
the file may come from another job of the same worker, before the loop has learned of the failure."""


def sync(file: File) -> None:
    """``file.sync()``; a failure is final (K23): every later sync of the same file fails, too.

    Raises:
        SyncFailedError
    """
    if file in _lost:
        raise SyncFailedError(f"{file.path} cannot be synced: an earlier sync of it failed")
    try:
        file.sync()
    except OSError as error:
        _lost.add(file)
        raise SyncFailedError(f"{file.path} could not be synced: {in_words(error, beside=file.path)}") from error


def create_file(disk: Disk, path: str, *chunks: Buffer, keep: bool = False) -> File:
    """Make a new file. File and name are durable when this returns (K1).

    Returns:
        The open file if ``keep``, else the closed one.
    """
    file = disk.open(path, create=True)
    try:
        offset = 0
        for chunk in chunks:
            file.pwrite(chunk, offset)
            offset += len(chunk)
        sync(file)
        disk.sync_directory(dirname(path))
    except BaseException:
        file.close()
        raise
    if not keep:
        file.close()
    return file


def close_all(files: Iterable[File]) -> None:
    """Close files of which nothing more is wanted. One that cannot be closed keeps none of the others open."""
    for file in files:
        with suppress(OSError):
            file.close()


def replace_file(disk: Disk, path: str, data: Buffer) -> None:
    """Replace a small file through ``path.tmp`` (K2). A crash leaves the old or the new content."""
    temporary = path + ".tmp"
    if disk.exists(temporary):
        disk.unlink(temporary)
    file = disk.open(temporary, create=True)
    try:
        file.pwrite(data, 0)
        sync(file)
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.sync_directory(dirname(path))


def file_size(disk: Disk, path: str) -> int:
    """How many bytes a file has."""
    file = disk.open(path, write=False)
    try:
        return file.size()
    finally:
        file.close()


def remove_files(disk: Disk, directory: str, names: list[str]) -> None:
    """Remove those of ``names`` that exist, durably. What replaces them is already durable (K3)."""
    gone = 0
    for name in names:
        if disk.exists(f"{directory}/{name}"):
            disk.unlink(f"{directory}/{name}")
            gone += 1
    if gone:
        disk.sync_directory(directory)


def write_zeros(file: File, size: int) -> None:
    """Write ``size`` zeros (whole blocks), so that later writes need no new space (K11)."""
    chunk = memoryview(mmap.mmap(-1, min(size, _ZEROS)))  # aligned, in case the file uses direct I/O
    for offset in range(0, size, len(chunk)):
        file.pwrite(chunk[: size - offset], offset)
