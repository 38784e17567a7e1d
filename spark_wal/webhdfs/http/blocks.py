"""The blocks that Hadoop's clients want to see of a file. There are none here: what they split their work by is
computed from the length and the block size that the file was created with.

The host of a block is "localhost", as in Hadoop's own file systems without places: Spark knows this word, and
does not wait for an executor there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SIZE_MIN: Final = 1 << 20
"""The smallest size of a block. HDFS takes no smaller one, and a list of blocks stays bounded."""

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
    """The blocks of a file that have any of the ``count`` bytes from ``offset``; None: all to its end.

    As in HDFS they are whole blocks, and where ``count`` is nothing the block in which ``offset`` lies.
    """
    if offset >= length:
        return
    size = max(block_size, SIZE_MIN)
    end = length if count is None else min(length, offset + max(count, 1))
    for at in range(offset - offset % size, end, size):
        yield FileBlock(at // size, at, min(size, length - at))
