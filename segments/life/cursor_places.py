"""Where the cursors of a stream stand, for retention and the checker. Only cursors that are stored count."""

from __future__ import annotations

from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta import Metadata
from segments.error_translation import worded
from segments.errors import UnsupportedStreamFormatError
from segments.life.retention import CursorPlace
from segments.names import stream_path
from segments.position import Position


async def cursor_places(metadata: Metadata, stream_id: str, stream: str) -> tuple[CursorPlace, ...]:
    """Every cursor, by its name.

    Raises:
        StreamMetadataError. StreamCorruptError, UnsupportedStreamFormatError: nobody can tell what a cursor still
        needs, so nothing must be removed.
    """
    path = stream_path(metadata, stream_id, "cursors")
    found: list[CursorPlace] = []
    with worded(f"reading the cursors of stream {stream}", stream):
        await metadata.store.sync(path)
        try:
            children = await metadata.store.children(path)
        except NoSuchKeyError:
            return ()
        if children:
            raise UnsupportedStreamFormatError(
                f"this program cannot read the cursors of stream {stream}", stream=stream
            )
    return tuple(found)


async def cursor_needs(metadata: Metadata, stream_id: str) -> dict[str, Position]:
    """What every cursor needs next, by its name. Raises: as ``cursor_places``."""
    return {place.name: place.needs for place in await cursor_places(metadata, stream_id, stream_id)}
