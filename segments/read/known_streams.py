"""Reads parts of streams from what others knew of them, over a client that asks the metadata store only if it must."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self, Unpack

from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.secret import without_secrets
from segments.chain import StreamHead
from segments.closing import Closing
from segments.error_translation import worded
from segments.errors import StreamConfigError
from segments.position import Position
from segments.read.options import ReaderOptions
from segments.read.reader import Reader
from segments.read.reading import StreamReading
from segments.read.source.known_part import KnownPart

if TYPE_CHECKING:
    from bookkeeper.client.known import KnownCluster


RUN_BYTES: Final = 2 << 20
"""What a bookie is asked for at once. A part is read from one end to the other, so several entries come together."""


class KnownStreams(Closing):
    """Reads streams of one cluster. It owns ``client``, which only reads."""

    def __init__(self, client: BookKeeper) -> None:
        self.client = client

    @classmethod
    async def connect(cls, uri: str, known: KnownCluster) -> Self:
        """Read from the cluster at a metadata URI, of which ``known`` is known. Close it.

        Raises: StreamConfigError: the address is not a metadata URI.
        """
        with worded(f"connecting to {without_secrets(uri)}"):
            return cls(await BookKeeper.connect(uri, known=known, config=ClientConfig(batch_read_bytes=RUN_BYTES)))

    def read(self, part: KnownPart, start: Position, **options: Unpack[ReaderOptions]) -> Reader:
        """Read from ``start`` on, a position in ``part``, up to ``stop`` or the part's end. The metadata store is asked
        only if bookies do not have an entry, or if there is no ``stop`` in the part.

        Raises: StreamConfigError.
        """
        head = StreamHead(self.client.metadata_store, part.stream_id, part.name)
        return StreamReading(self.client, head, _no_cursor, part).read(start, **options)

    async def learn(self, known: KnownCluster) -> None:
        """Take newer addresses of bookies."""
        self.client.learn(known)

    async def close(self) -> None:
        await self.client.close()


async def _no_cursor(name: str) -> tuple[int, Position]:
    raise StreamConfigError(f"a part that is known has no cursors, and none of the name {name}")
