"""What a replica's snapshot holds: the table of requests, then the program's own bytes.

    magic "JREPL" u8 format | u32 size of the table | table of requests | the program's chunks

The store checks the whole by its checksum.
"""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from journal_manager.errors import JournalCorruptionError, UnsupportedLayoutError

FORMAT: Final = 1
_HEADER: Final = struct.Struct(">5sBI")


def joined(table: bytes, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The content of a snapshot, in chunks."""
    yield _HEADER.pack(b"JREPL", FORMAT, len(table)) + table
    yield from chunks


async def divided(chunks: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes]]:
    """Read the table of requests; the rest are the program's chunks.

    Raises:
        JournalCorruptionError: this is not a replica's snapshot. UnsupportedLayoutError: a newer program wrote it.
    """
    data = bytearray()
    await _fill(data, chunks, _HEADER.size)
    magic, version, size = _HEADER.unpack_from(data)
    if magic != b"JREPL":
        raise JournalCorruptionError("this snapshot was not written by a replica")
    if version > FORMAT:
        raise UnsupportedLayoutError(
            f"the replica's snapshot has format {version}, and this program reads formats up to {FORMAT}"
        )
    await _fill(data, chunks, _HEADER.size + size)
    end = _HEADER.size + size
    return bytes(data[_HEADER.size : end]), _rest(bytes(data[end:]), chunks)


async def _fill(data: bytearray, chunks: AsyncIterator[bytes], size: int) -> None:
    while len(data) < size:
        try:
            data += await anext(chunks)
        except StopAsyncIteration:
            raise JournalCorruptionError(f"a replica's snapshot ends after {len(data)} bytes") from None


async def _rest(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for chunk in chunks:
        yield chunk
