"""The interface of a store that holds a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

from spark_wal.checkpoint_copy.contents import FileStamp

PIECE: Final = 1 << 20
"""Bytes that are read or written at a time."""

Parts = Callable[[], Iterable[bytes]]
"""The bytes of a file; each call starts at the beginning."""


class CheckpointStoreError(Exception):
    """A store failed. The text has its address and the reason."""


class CheckpointStore(Protocol):
    """A directory in a store. Paths are relative to it, with slashes. Calls block; several threads may make them."""

    uri: str

    def listing(self) -> Mapping[str, FileStamp]:
        """List all files, however deep; none if there is no such directory.

        Raises:
            CheckpointStoreError: the directory cannot be listed.
        """

    def read(self, path: str) -> Iterator[bytes]:
        """Read a file. Raises CheckpointStoreError: it cannot be read to its end."""

    def write(self, path: str, parts: Parts) -> None:
        """Write a whole file and the directories above it. An existing file is replaced.

        Raises:
            CheckpointStoreError: the file was not written completely.
        """

    def sync(self) -> None:
        """Make durable what was written. Raises CheckpointStoreError."""

    def close(self) -> None: ...
