"""Spark's temporary files: which of them are abandoned. A machine.

Spark writes ``.<name>.<uuid>.tmp`` and renames it. If a task dies in between, its file would stay for ever. A file is
touched when somebody makes, extends or renames it (the tree has these times), reads it, or changes its attributes
(known while one gateway owns the namespace).

    check_interval_s          how long to wait between two checks
    look(found, now) the files to remove: untouched for ``keep_s`` at this check and at the one before

A file is removed only at the second check, and a clock that does not jump sets the time between checks. So a wall clock
that is set a day ahead removes no file shortly before its rename.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from spark_wal.webhdfs.config import KEEP_S
from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode
from spark_wal.webhdfs.files.paths import child_of, is_temporary

CHECK_MAX_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class TempFile:
    """A temporary file, as it was found."""

    path: str
    node: FileNode


class AbandonedFiles:
    """Decides which temporary files are removed."""

    def __init__(self, keep_s: float = KEEP_S) -> None:
        self._keep_ms = keep_s * 1000
        self._touched: dict[int, int] = {}
        """Inode -> when it was last read or its attributes changed, under this owner. It has only existing files."""
        self._suspects: dict[int, int] = {}
        """The files that were due at the last check: inode -> when they had been touched."""

    @property
    def check_interval_s(self) -> float | None:
        """Seconds between two checks; None to make none."""
        if not self._keep_ms:
            return None
        return min(CHECK_MAX_S, max(1.0, self._keep_ms / 24_000))

    def touch(self, temp: FileNode, now_ms: int) -> None:
        """Note that somebody read the file, or changed its attributes."""
        if self._keep_ms:
            self._touched[temp.inode] = now_ms

    def abandoned(self, found: Iterable[TempFile], now_ms: int) -> list[TempFile]:
        """Of all temporary files, return those to remove now."""
        present: set[int] = set()
        suspects: dict[int, int] = {}
        gone: list[TempFile] = []
        for temp in found:
            present.add(temp.node.inode)
            if not self.is_due(temp, now_ms):
                continue
            suspects[temp.node.inode] = at = self._touched_ms(temp.node)
            if self._suspects.get(temp.node.inode) == at:
                gone.append(temp)
        self._suspects = suspects
        self._touched = {inode: at for inode, at in self._touched.items() if inode in present}
        return gone

    def is_due(self, temp: TempFile, now_ms: int) -> bool:
        """Whether nobody has touched the file for long enough."""
        return bool(self._keep_ms) and now_ms - self._touched_ms(temp.node) >= self._keep_ms

    def _touched_ms(self, node: FileNode) -> int:
        return max(node.touched_ms, self._touched.get(node.inode, 0))


def temporary_files(root: DirectoryNode) -> Iterator[list[TempFile]]:
    """All files with such a name, directory by directory. The tree may change between two directories.

    This may miss a file that moves to another directory meanwhile; a later check finds it.
    """
    stack: list[tuple[str, DirectoryNode]] = [("/", root)]
    while stack:
        path, directory = stack.pop()
        found: list[TempFile] = []
        for name, child in directory.children.items():
            if isinstance(child, DirectoryNode):
                stack.append((child_of(path, name), child))
            elif is_temporary(name):
                found.append(TempFile(child_of(path, name), child))
        yield found
