"""What the tree answers. Data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from spark_wal.webhdfs.files.inodes import FileNode, Node


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """The result of applying a record."""

    value: bool = True
    """The answer, where the operation has one. False means that nothing was done."""
    changed: bool = True
    """False: the tree is as it was, and the record need not be kept."""
    path: str = ""
    """The path of the result, where it is not the record's (a bare rename into a directory)."""
    length: int | None = None
    """The modification time of the file that was renamed."""
    freed: tuple[str, ...] = ()
    """Blobs that no file refers to any more."""
    removed: tuple[str, ...] = ()
    """The files that went, where the record names none of them."""


UNCHANGED_TRUE: Final = ApplyResult(value=True, changed=False)
UNCHANGED_FALSE: Final = ApplyResult(value=False, changed=False)


class PathLookup(NamedTuple):
    """The answer to a lookup."""

    node: Node | None
    seen: int
    """The highest sequence number of a record that this answer rests on: it may be told once that record is durable."""


@dataclass(frozen=True, slots=True)
class ContentSummary:
    """The sums of everything at and below a path."""

    directories: int
    files: int
    length: int
    quota: int | None
    names_quota: int | None = None


def shown(node: Node) -> int:
    """The highest sequence number of a record that an inode's status shows (S3)."""
    return node.changed if isinstance(node, FileNode) else max(node.changed, node.names_changed)
