"""Where the cursors of a stream stand, for retention and the checker. Only cursors that are stored count."""

from __future__ import annotations

from bookkeeper.meta import Metadata
from segments.cursors.cursor_node import read_cursors
from segments.retention.retention import CursorPosition


async def cursor_positions(metadata: Metadata, stream_id: str, stream: str) -> tuple[CursorPosition, ...]:
    """Every cursor, by its name.

    Raises:
        StreamMetadataError. StreamCorruptError, UnsupportedStreamFormatError: nobody can tell what a cursor still
        needs, so nothing must be removed.
    """
    cursors = await read_cursors(metadata, stream_id, stream)
    return tuple(CursorPosition(name, state.mark.position, state.mark.seq_no) for name, state in cursors.items())


async def cursor_needs(metadata: Metadata, stream_id: str) -> dict[str, CursorPosition]:
    """What every cursor needs next, by its name. Raises: as ``cursor_positions``."""
    return {place.name: place for place in await cursor_positions(metadata, stream_id, stream_id)}
