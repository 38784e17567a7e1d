"""Files whose bytes are on their way: each is followed while others rename it, or a directory above it. Pure."""

from __future__ import annotations

from spark_wal.webhdfs.files.inodes import (
    FileNode,
)
from spark_wal.webhdfs.files.paths import is_below


class TrackedFile:
    """A file whose bytes are on their way. It follows the file while others rename it, or a directory above it."""

    __slots__ = ("node", "path")

    def __init__(self, node: FileNode, path: str) -> None:
        self.node = node
        self.path = path
        """The file's path, unless it was removed."""


class TrackedFiles:
    """The files that are followed in one tree."""

    def __init__(self) -> None:
        self._followed: set[TrackedFile] = set()

    def __len__(self) -> int:
        return len(self._followed)

    def follow(self, node: FileNode, path: str) -> TrackedFile:
        """Follow the file wherever it is renamed to, until ``unfollow``. It may be followed several times."""
        followed = TrackedFile(node, path)
        self._followed.add(followed)
        return followed

    def unfollow(self, followed: TrackedFile) -> None:
        self._followed.discard(followed)

    def lead(self, source: str, target: str) -> None:
        """Give followed files their new paths after a rename."""
        for followed in self._followed:
            if followed.path == source or is_below(followed.path, source):
                followed.path = target + followed.path[len(source) :]
