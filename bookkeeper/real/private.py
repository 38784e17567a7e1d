"""Files that nobody but their owner may touch: keys, tokens, passwords."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import threading
from collections.abc import Callable
from typing import Final

from bookkeeper.errors import ConfigError
from bookkeeper.secret import Secret

ROOT: Final = 0
"""The user who may change everything anyway."""

PRIVATE_FILE_MAX: Final = 1 << 20
"""Bytes of the largest private file that is read."""


def read_secret(path: str) -> Secret:
    """The only line of a private file, such as a token.

    Raises:
        ConfigError: others may read the file, it is empty, or it has several lines. OSError: it cannot be read.
    """
    lines = read_private(path).decode("utf-8", "replace").split()
    if len(lines) != 1:
        raise ConfigError(f"{path} must hold one secret and nothing else; it has {len(lines)} words")
    return Secret(lines[0])


def read_private(path: str) -> bytes:
    """The bytes of a file that only its owner may read, who is this process's user, or root.

    Raises:
        ConfigError: others may read or change it, or it is too large. OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe is refused, and not waited for
    with open(descriptor, "rb") as file:
        _require_private(descriptor, path)
        data = file.read(PRIVATE_FILE_MAX + 1)
    if len(data) > PRIVATE_FILE_MAX:
        raise ConfigError(f"{path} is too large: it may have at most {PRIVATE_FILE_MAX} bytes")
    return data


def append_private(path: str, text: str) -> None:
    """Add lines to a private file, made (0600) if it is not there; durable when it returns.

    Raises:
        ConfigError: others may read it. OSError: it cannot be written; nothing was added.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(descriptor, "r+b", buffering=0) as file:
        _require_private(descriptor, path)
        size = os.fstat(descriptor).st_size
        lacks_end = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        try:
            _write(file, (("\n" if lacks_end else "") + text).encode())
        except OSError:
            os.ftruncate(descriptor, size)  # a part of a secret is none
            raise
        os.fsync(descriptor)


def replace_private(path: str, text: str) -> None:
    """Put a private file with this text in the place of ``path``, whole or not at all; durable when it returns.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            _write(file, text.encode("utf-8", "surrogateescape"))
            os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename is None:  # the system does not say which file has no space
            raise OSError(error.errno, os.strerror(error.errno or 0), path) from error
        raise
    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def new_private_file(path: str) -> io.BufferedWriter:
    """An empty private file for writing. What was there is removed; a link is not followed, whoever has laid it.

    Raises: OSError: it cannot be made.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def exchange_private(path: str, changed: Callable[[str], str]) -> None:
    """Put a private file with a changed text in its place, whole or not at all; durable when it returns. What ``path``
    links to is exchanged, not the link. Of two that do this at once one is refused.

    Raises:
        ConfigError: others may read it, or another process changes it now. OSError: it cannot be read or written.
    """
    path = os.path.realpath(path)
    mine = f"{path}.changing"
    try:
        os.close(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        raise ConfigError(
            f"{mine} is there: another process changes {path}, or has died while it did; then remove it"
        ) from None
    try:
        replace_private(path, changed(read_private(path).decode("utf-8", "surrogateescape")))
    finally:
        os.unlink(mine)


def require_own(path: str) -> None:
    """Check that a file or directory of data, if it is there, belongs to this process's user, or to root: whoever owns
    it can exchange what is in it, also later. Root is not asked, because the data of a container often has another
    user's number.

    Raises:
        ConfigError: it belongs to another user, who may have made it beforehand.
    """
    me = os.geteuid()
    if me == ROOT:
        return
    try:
        owner = os.stat(path).st_uid
    except (FileNotFoundError, NotADirectoryError):
        return
    if owner not in (me, ROOT):
        raise ConfigError(
            f"{path} belongs to another user (number {owner}), who could exchange what is in it: choose a place of "
            f"your own, or, if it is yours, chown {me} {path}"
        )


def make_private(path: str) -> None:
    """Nobody but its owner may touch a file or directory of ours from now on; nothing if it is not there.

    It is not opened: closing a file lets go of the locks that the process holds on it elsewhere.
    """
    try:
        found = os.stat(path, follow_symlinks=False)
        kind, mode = stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode)
        ours = kind in (stat.S_IFREG, stat.S_IFDIR) and found.st_uid == os.geteuid()
        if ours and mode & (stat.S_IRWXG | stat.S_IRWXO):
            os.chmod(path, mode & stat.S_IRWXU)
    except FileNotFoundError:
        pass


def make_private_file(path: str) -> None:
    """An empty file that only its owner may touch, if there is none yet. Nobody ever sees it otherwise.

    Raises:
        OSError: it cannot be made.
    """
    if os.path.lexists(path):
        return
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}.new"
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def _write(file: io.FileIO, data: bytes) -> None:
    """Write all of it: on a disk that is nearly full a write takes a part, and only the next one fails."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _require_private(descriptor: int, path: str) -> None:
    found = os.fstat(descriptor)
    mode = found.st_mode
    if not stat.S_ISREG(mode):
        raise ConfigError(f"{path} is not a file")
    if found.st_uid not in (os.geteuid(), ROOT):
        raise ConfigError(
            f"{path} holds secrets, but belongs to another user (number {found.st_uid}), who may change it: "
            f"chown {os.geteuid()} {path}"
        )
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(
            f"{path} holds secrets, but its mode {stat.S_IMODE(mode):04o} lets others touch it: chmod 600 {path}"
        )
