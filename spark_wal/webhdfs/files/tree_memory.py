"""About how much memory a tree takes, and how much it may take (X34). Pure.

Whoever may create files and directories could otherwise make them until the gateway's memory ends. Only what is about
to be done is refused by the limit, never what the journal brings: the same tree is there after every replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spark_wal.webhdfs.errors import NameQuotaExceededError
from spark_wal.webhdfs.files.inodes import FileNode, Node, Piece

NAME_BYTES: Final = 512
"""A file or directory, without its texts and its bytes; measured, and rounded up."""

PIECE_BYTES: Final = 128
"""A piece of a file, without its bytes."""


class TreeMemory:
    """Counts what the nodes of one tree take."""

    def __init__(self) -> None:
        self.used = 0
        """Bytes, about."""
        self.limit: int | None = None
        """The most; None while the journal is replayed, and where there is no limit."""

    def add(self, node: Node) -> None:
        """Count a node, as it is now, but for its name and what is below it."""
        self.used += _weight(node)

    def remove(self, node: Node) -> None:
        """Count a node as gone, or as about to be changed."""
        self.used -= _weight(node)

    def name(self, text: str, sign: int = 1) -> None:
        """Count a name that is linked (1) or unlinked (-1)."""
        self.used += sign * size_of(text)

    def check(self, more: int) -> None:
        """Refuse what takes ``more`` bytes if they do not fit.

        Raises:
            NameQuotaExceededError: they do not.
        """
        if self.limit is not None and self.used + more > self.limit:
            raise NameQuotaExceededError(
                f"The NameSpace quota (memory of the gateway) is exceeded: its files and directories take {self.used} "
                f"bytes of memory and may take {self.limit}: delete some, or give the gateway more (--memory-max)"
            )

    def holds(self, size: int) -> bool:
        """Whether the bytes of a small file still go into the tree. They may take half of it: the other half is for
        names, and bytes that find no room go elsewhere."""
        return self.limit is None or self.used + size <= self.limit // 2


def inline_of(pieces: Sequence[Piece]) -> int:
    """The memory of a file's pieces."""
    return PIECE_BYTES * len(pieces) + sum(len(piece) for piece in pieces if isinstance(piece, bytes))


def size_of(text: str | None) -> int:
    """The memory of a text."""
    return 0 if text is None else len(text) if text.isascii() else 4 * len(text)


def _weight(node: Node) -> int:
    texts = size_of(node.owner) + size_of(node.group) + 2 * size_of(node.renamed_from)  # it is a key elsewhere, too
    if not isinstance(node, FileNode):
        return NAME_BYTES + texts
    return NAME_BYTES + texts + inline_of(node.pieces)
