"""Spark's temporary files: received, not yet renamed, in no record.

Spark's checkpoint file manager writes ``.<name>.<uuid>.tmp`` and renames it; nobody relies on the
temporary file itself. So it is only remembered here, and the one record that the rename writes carries
bytes and name: one durable append for an atomic file. If the gateway dies in between, the rename finds
no source, and Spark's task is run again.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_wal.webhdfs.paths import child_of, is_below, name_of, parent_of
from spark_wal.webhdfs.records import NewFile
from spark_wal.webhdfs.uploads import Upload


@dataclass(frozen=True, slots=True)
class TempFile:
    """One of them, complete."""

    upload: Upload
    permission: int
    owner: str
    replication: int
    block_size: int
    at_ms: int

    def file(self) -> NewFile:
        """As the record will carry it."""
        return NewFile(self.upload.pieces(), self.permission, self.owner, self.replication, self.block_size, self.at_ms)


class TempFiles:
    """Those of one gateway, by path."""

    def __init__(self) -> None:
        self._files: dict[str, TempFile] = {}
        self._names: dict[str, dict[str, TempFile]] = {}

    def __len__(self) -> int:
        return len(self._files)

    def get(self, path: str) -> TempFile | None:
        return self._files.get(path)

    def put(self, path: str, temp: TempFile) -> TempFile | None:
        """Remember a file; returns the one that had its name."""
        replaced = self._files.get(path)
        self._files[path] = temp
        self._names.setdefault(parent_of(path), {})[name_of(path)] = temp
        return replaced

    def pop(self, path: str) -> TempFile | None:
        temp = self._files.pop(path, None)
        if temp is not None:
            names = self._names[parent_of(path)]
            del names[name_of(path)]
            if not names:
                del self._names[parent_of(path)]
        return temp

    def names_in(self, directory: str) -> dict[str, TempFile]:
        """Those that lie directly in a directory, by name."""
        return self._names.get(directory, {})

    def below(self, path: str) -> list[str]:
        """The paths of those somewhere under a directory, sorted."""
        directories = [d for d in self._names if d == path or is_below(d, path)]
        return sorted(child_of(d, name) for d in directories for name in self._names[d])
