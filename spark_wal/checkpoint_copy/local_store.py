"""A directory of this machine. A rename makes a file appear complete; ``sync`` makes files and names durable."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

from bookkeeper.errors import ConfigError, in_words
from spark_wal.checkpoint_copy.contents import FileStamp
from spark_wal.checkpoint_copy.stores import PIECE, CheckpointStoreError, Parts

_PARTIAL = ".bk-copy."


class LocalStore:
    """``file:///DIR``, ``file:/DIR`` or a path."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise ConfigError(f"expected file:///DIRECTORY, got {uri!r}")
        self._root = os.path.abspath(parts.path if parts.scheme else uri)
        self.uri = f"file://{self._root}"
        self._lock = threading.Lock()
        self._touched: set[str] = set()

    def listing(self) -> dict[str, FileStamp]:
        """List the files. Names of an earlier run may not be durable; the next :meth:`sync` makes them so."""
        found: dict[str, FileStamp] = {}
        above = os.path.dirname(self._root)
        seen = {above} if os.access(above, os.R_OK) else set()
        try:
            for directory, directories, names in os.walk(self._root, onerror=_fail):
                seen.add(directory)
                for name in directories:
                    if os.path.islink(path := os.path.join(directory, name)):
                        raise CheckpointStoreError(
                            f"{self.uri}: {path} is a link to a directory, and a copy does not follow it: "
                            "put the directory itself there"
                        )
                for name in names:
                    if name.startswith(_PARTIAL):
                        continue
                    path = os.path.join(directory, name)
                    status = os.stat(path)
                    found[os.path.relpath(path, self._root)] = FileStamp(
                        status.st_size, status.st_mtime_ns, status.st_mtime_ns // 1_000_000, _owner(status.st_uid)
                    )
        except FileNotFoundError as error:
            if error.filename == self._root:
                return {}
            raise CheckpointStoreError(f"{self.uri}: {in_words(error)}") from error
        except OSError as error:
            raise CheckpointStoreError(f"{self.uri}: {in_words(error)}") from error
        with self._lock:
            self._touched |= seen
        return found

    def read(self, path: str) -> Iterator[bytes]:
        try:
            with open(self._inside(path), "rb") as file:
                while data := file.read(PIECE):
                    yield data
        except OSError as error:
            raise CheckpointStoreError(f"{self.uri}: {in_words(error)}") from error

    def write(self, path: str, parts: Parts) -> None:
        target = self._inside(path)
        directory = os.path.dirname(target)
        partial = os.path.join(directory, _PARTIAL + secrets.token_hex(8))
        try:
            self._make(directory)
            try:
                with open(partial, "xb") as file:
                    for data in parts():
                        file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(partial, target)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
                raise
        except OSError as error:
            raise CheckpointStoreError(f"{self.uri}: {in_words(error)}") from error
        with self._lock:
            self._touched.add(directory)

    def sync(self) -> None:
        with self._lock:
            touched, self._touched = self._touched, set()
        try:
            for directory in sorted(touched, reverse=True):
                descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise CheckpointStoreError(f"{self.uri}: {in_words(error)}") from error

    def close(self) -> None:
        """Does nothing: no file is kept open."""

    def _make(self, directory: str) -> None:
        """Make a directory with its parents, and note each new name for the next sync."""
        missing = directory
        while not os.path.isdir(missing):
            missing = os.path.dirname(missing)
            with self._lock:
                self._touched.add(missing)
        os.makedirs(directory, exist_ok=True)

    def _inside(self, path: str) -> str:
        """The path of a name inside the directory. Raises CheckpointStoreError: the name leads out of it."""
        if path.startswith("/") or "\0" in path or ".." in path.split("/"):
            raise CheckpointStoreError(f"{self.uri}: the name {path!r} leads out of the directory")
        return os.path.join(self._root, path)


def _owner(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _fail(error: OSError) -> None:
    raise error
