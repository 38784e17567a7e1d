"""The blocks of a file that Hadoop's clients expect. The gateway has no blocks: it computes them from the length and
the block size of the file, so that clients can split their work.

The host of a block is "localhost", as in Hadoop's own file systems without locations. Spark knows this name, and does
not wait for an executor there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SIZE_MIN: Final = 1 << 20
"""The smallest block size in bytes. HDFS takes no smaller one either, and it bounds a list of blocks."""

HOST: Final = "localhost"
PORT: Final = 9866
"""Hadoop's port for file content."""


@dataclass(frozen=True, slots=True)
class FileBlock:
    """A part of a file."""

    number: int
    offset: int
    length: int


def blocks_of(length: int, block_size: int, offset: int, count: int | None) -> Iterator[FileBlock]:
    """The blocks of a file that have any of the ``count`` bytes from ``offset`` on; None means up to the end.

    As in HDFS these are whole blocks. If ``count`` is 0, it is the block with ``offset``.
    """
    if offset >= length:
        return
    size = max(block_size, SIZE_MIN)
    end = length if count is None else min(length, offset + max(count, 1))
    for at in range(offset - offset % size, end, size):
        yield FileBlock(at // size, at, min(size, length - at))
