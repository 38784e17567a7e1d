"""A directory in a store of pyarrow: S3 (also written s3a://), HDFS, Google's and Azure's storage.

Only this file imports pyarrow. Its file systems find credentials and endpoints in the environment, in the usual files,
and for S3 in the address (``?region=...&endpoint_override=...``).
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import dirname
from typing import Any, Final
from urllib.parse import quote, urlsplit

from pyarrow import ArrowException
from pyarrow.fs import FileSelector, FileSystem, FileType

from bookkeeper.errors import ConfigError, in_words
from spark_wal.checkpoint_copy.contents import FileStamp
from spark_wal.checkpoint_copy.stores import PIECE, CheckpointStoreError, Parts

_AS_GIVEN: Final = "/:@[]!$&'()*+,;=~"
"""What keeps its place in an address. pyarrow decodes the rest, and Hadoop's addresses are not encoded."""


class ArrowStore:
    """A directory at a URI that :meth:`pyarrow.fs.FileSystem.from_uri` understands."""

    def __init__(self, uri: str) -> None:
        self.uri = uri.partition("?")[0].rstrip("/")
        if "@" in urlsplit(uri).netloc:
            raise ConfigError("the address must not hold credentials: S3 takes them from the environment")
        place, asks, options = uri.partition("?")
        known = (
            quote("s3" + place[3:] if place.startswith(("s3a:", "s3n:")) else place, safe=_AS_GIVEN) + asks + options
        )
        try:
            system, root = FileSystem.from_uri(known)
        except (ArrowException, OSError) as error:
            raise ConfigError(f"{self.uri} cannot be opened: {in_words(error)}") from error
        self._system: Any = system
        self._root = str(root).rstrip("/")
        self._is_s3 = self._system.type_name == "s3"

    def listing(self) -> dict[str, FileStamp]:
        selector = FileSelector(self._root, allow_not_found=True, recursive=True)
        try:
            found = self._system.get_file_info(selector)
        except (ArrowException, OSError) as error:
            raise CheckpointStoreError(f"{self.uri}: {in_words(error)}") from error
        start = len(self._root) + 1
        files = [f for f in found if f.type == FileType.File]
        return {f.path[start:]: FileStamp(f.size, f.mtime_ns or 0, (f.mtime_ns or 0) // 1_000_000) for f in files}

    def read(self, path: str) -> Iterator[bytes]:
        try:
            with self._system.open_input_stream(f"{self._root}/{path}") as stream:
                while data := stream.read(PIECE):
                    yield data
        except (ArrowException, OSError) as error:
            raise CheckpointStoreError(f"{self.uri}: reading {path}: {in_words(error)}") from error

    def write(self, path: str, parts: Parts) -> None:
        """Write a file. A write that fails may leave a short file, so a file counts only after it was read back."""
        target = f"{self._root}/{path}"
        try:
            if not self._is_s3:  # directories of S3 are only names
                self._system.create_dir(dirname(target), recursive=True)
            with self._system.open_output_stream(target) as stream:
                for data in parts():
                    stream.write(data)
        except (ArrowException, OSError) as error:
            raise CheckpointStoreError(f"{self.uri}: writing {path}: {in_words(error)}") from error

    def sync(self) -> None:
        """Does nothing: what the store has answered is as durable as that store makes it."""

    def close(self) -> None:
        """Does nothing: nothing is kept open."""
