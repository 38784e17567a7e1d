"""What the copier asks of a store that holds a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol

from spark_wal.checkpoint_copy.contents import FileStamp

PIECE: Final = 1 << 20
"""Bytes that are read or written at a time."""

Parts = Callable[[], Iterable[bytes]]
"""The bytes of a file; from the beginning, each time it is called."""


class CheckpointStoreError(Exception):
    """A place cannot do what was asked: the address, and why."""


class CheckpointStore(Protocol):
    """A directory somewhere. Paths are relative to it, with slashes. Calls block; several threads may make them."""

    uri: str

    def listing(self) -> Mapping[str, FileStamp]:
        """All files, however deep; none if there is no such directory.

        Raises:
            CheckpointStoreError: it cannot be listed.
        """

    def read(self, path: str) -> Iterator[bytes]:
        """The bytes of a file. Raises CheckpointStoreError: it cannot be read to its end."""

    def write(self, path: str, parts: Parts) -> None:
        """A whole file, in place of one that may be there, with the directories above it.

        Raises:
            CheckpointStoreError: it was not written, or not to its end.
        """

    def sync(self) -> None:
        """What was written is durable when this returns. Raises CheckpointStoreError."""

    def close(self) -> None: ...
