"""The nodes of the tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

ROOT_INODE: Final = 16385
"""HDFS's number for the root; the others follow."""

OWNER_OF_ROOT: Final = "hdfs"
GROUP: Final = "supergroup"
"""The root's group. New inodes take their parent's."""


@dataclass(frozen=True, slots=True)
class BlobRef:
    """Bytes kept outside the journal: ``length`` bytes from ``offset`` of ``blob``."""

    blob: str
    offset: int
    length: int


Piece = bytes | BlobRef
"""A part of a file: its bytes, or the blob that has them."""


def cut(pieces: tuple[Piece, ...], start: int, end: int) -> list[Piece]:
    """The parts of ``pieces`` that make up the bytes from ``start`` to ``end``."""
    parts: list[Piece] = []
    at = 0
    for piece in pieces:
        size = len(piece) if isinstance(piece, bytes) else piece.length
        first, last = max(start - at, 0), min(end - at, size)
        if first < last:
            if isinstance(piece, bytes):
                parts.append(piece[first:last])
            else:
                parts.append(type(piece)(piece.blob, piece.offset + first, last - first))
        at += size
    return parts


@dataclass(slots=True)
class FileNode:
    """A file. A file in the tree is complete (S2), unless its path is one of files that grow (S13)."""

    inode: int
    permission: int
    owner: str
    group: str
    modified_ms: int
    accessed_ms: int
    pieces: tuple[Piece, ...]
    length: int
    replication: int
    block_size: int
    renamed_from: str | None = None
    """Its path before its last rename. It distinguishes a repeated rename request from a conflict."""
    touched_ms: int = 0
    """When a record last made, extended or moved it. Unlike ``modified_ms`` no client can set it."""
    changed: int = 0
    """The sequence number of the record that last created, moved or changed it. A reply that shows this inode waits
    until that record is durable."""

    def blobs(self) -> Iterator[str]:
        for piece in self.pieces:
            if isinstance(piece, BlobRef):
                yield piece.blob

    def tail(self) -> tuple[int, list[bytes]]:
        """The bytes behind the last blob, which records brought: where they begin, and their pieces."""
        pieces: list[bytes] = []
        for piece in reversed(self.pieces):
            if isinstance(piece, BlobRef):
                break
            pieces.append(piece)
        pieces.reverse()
        return self.length - sum(map(len, pieces)), pieces


@dataclass(slots=True)
class DirectoryNode:
    """A directory."""

    inode: int
    permission: int
    owner: str
    group: str
    modified_ms: int
    accessed_ms: int = 0
    children: dict[str, Node] = field(default_factory=dict)
    bytes_below: int = 0
    """The sum of the lengths of all files below."""
    quota: int | None = None
    """The most bytes below it; None if it has no limit of its own."""
    names_below: int = 0
    """How many files and directories are below it."""
    names_quota: int | None = None
    """The most files and directories at and below it, itself included, as with HDFS; None: no limit of its own."""
    renamed_from: str | None = None
    changed: int = 0
    names_changed: int = 0
    """The sequence number of the record that last changed the set of children. A reply "not here" waits for it."""

    def sorted_names(self) -> list[str]:
        """The names in the order of their UTF-8 bytes, as HDFS lists them (code point order is the same)."""
        return sorted(self.children)


Node = FileNode | DirectoryNode


def directories_below(directory: DirectoryNode) -> Iterator[DirectoryNode]:
    """The directory and all directories below it."""
    stack = [directory]
    while stack:
        one = stack.pop()
        yield one
        stack.extend(child for child in one.children.values() if isinstance(child, DirectoryNode))


def blobs_below(directory: DirectoryNode) -> set[str]:
    """Every blob that a file below the directory refers to."""
    found: set[str] = set()
    for one in directories_below(directory):
        for child in one.children.values():
            if isinstance(child, FileNode):
                found.update(child.blobs())
    return found
