"""The head of a stream: its chain at its path in the metadata store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bookkeeper.chains.chain_node import ChainNode
from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta.store import Version
from segments.chain.chain_codec import decode_chain, encode_chain
from segments.chain.stream_chain import StreamChain
from segments.chain.stream_pages import StreamPages
from segments.errors import ChainCorruptError, StreamNotFoundError
from segments.names import stream_path

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata


class RecentHead(ChainNode[StreamChain]):
    """The chain of one stream without its pages, as its owner needs it: one value, however long the stream is."""

    def __init__(self, metadata: Metadata, stream_id: str, name: str = "") -> None:
        super().__init__(metadata.store, stream_path(metadata, stream_id, "chain"), decode_chain, encode_chain)
        self.stream_id = stream_id
        self.name = name or stream_id
        """For messages."""

    async def read(self) -> tuple[StreamChain, Version]:
        """Read the chain as it is now.

        Raises:
            StreamNotFoundError: there is none. ChainCorruptError, UnsupportedStreamFormatError.
        """
        try:
            return await super().read()
        except NoSuchKeyError as error:
            raise StreamNotFoundError(f"there is no stream {self.name}", stream=self.name) from error


class StreamHead(RecentHead):
    """The chain of one stream with all its pages, changed by compare-and-set."""

    def __init__(self, metadata: Metadata, stream_id: str, name: str = "") -> None:
        super().__init__(metadata, stream_id, name)
        self._metadata = metadata
        self._pages: StreamPages | None = None

    @property
    def recent(self) -> RecentHead:
        """The same head, read without its pages."""
        return RecentHead(self._metadata, self.stream_id, self.name)

    @property
    def pages(self) -> StreamPages:
        """Its pages. Few streams have any."""
        if self._pages is None:
            self._pages = StreamPages(self._metadata, self.stream_id)
        return self._pages

    async def read(self) -> tuple[StreamChain, Version]:
        """Read the chain as it is now, and those of its pages that were not read before.

        Raises: as RecentHead.read. ChainCorruptError also where a page is missing or damaged.
        """
        missing = None
        while True:
            chain, version = await super().read()
            if not chain.pages:
                return chain, version
            if chain.pages == missing:
                raise ChainCorruptError(f"a page of the node of stream {self.name} is missing")
            try:
                return replace(chain, pages=await self.pages.read(chain.pages)), version
            except NoSuchKeyError:
                missing = chain.pages  # its segments were removed meanwhile, or it is lost
