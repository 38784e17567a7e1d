"""Places that hold checkpoints, by address.

file:///DIR, or a path                a directory here
webhdfs://, swebhdfs:// HOST:PORT/P   a gateway of ours, or HDFS by WebHDFS
s3a://, s3://, gs://, hdfs://, ...    what pyarrow knows (the package pyarrow)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol
from urllib.parse import urlsplit

from bookkeeper.errors import ConfigError
from spark_wal.checkpoint_copy.contents import FileStamp
from spark_wal.spark_access import GatewayAccess

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
            PlaceError: it cannot be listed.
        """

    def read(self, path: str) -> Iterator[bytes]:
        """The bytes of a file. Raises PlaceError: it cannot be read to its end."""

    def write(self, path: str, parts: Parts) -> None:
        """A whole file, in place of one that may be there, with the directories above it.

        Raises:
            PlaceError: it was not written, or not to its end.
        """

    def sync(self) -> None:
        """What was written is durable when this returns. Raises PlaceError."""

    def close(self) -> None: ...


def open_place(uri: str, access: GatewayAccess) -> CheckpointStore:
    """The place at an address; ``access`` is for gateways.

    Raises:
        ConfigError: not such an address, or a package is missing.
    """
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        from spark_wal.checkpoint_copy.local_store import LocalStore

        return LocalStore(uri)
    if parts.scheme in ("webhdfs", "swebhdfs"):
        from spark_wal.checkpoint_copy.gateway_store import GatewayStore

        return GatewayStore(uri, access)
    try:
        from spark_wal.checkpoint_copy.arrow_store import ArrowStore
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"{parts.scheme}:// needs the Python package {missing.name!r}, which is not installed: "
            "pip install 'bookkeeper-py[copy]'"
        ) from None
    return ArrowStore(uri)
