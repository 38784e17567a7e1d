"""The record of a stream at its path in the metadata store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bookkeeper.chains import ChainRecord
from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta.store import Version
from segments.chain.chain_codec import decode_chain
from segments.chain.stream_chain import StreamChain
from segments.errors import StreamNotFoundError
from segments.names import stream_path

if TYPE_CHECKING:
    from bookkeeper.meta import Metadata


class StreamRecord(ChainRecord[StreamChain]):
    """The record of one stream, changed by compare-and-set."""

    def __init__(self, metadata: Metadata, stream_id: str, name: str = "") -> None:
        super().__init__(metadata.store, stream_path(metadata, stream_id, "chain"), decode_chain)
        self.stream_id = stream_id
        self.name = name or stream_id
        """For messages."""

    async def read(self) -> tuple[StreamChain, Version]:
        """Read the record as it is now.

        Raises:
            StreamNotFoundError: there is none. ChainCorruptError, UnsupportedStreamFormatError.
        """
        try:
            return await super().read()
        except NoSuchKeyError as error:
            raise StreamNotFoundError(f"there is no stream {self.name}", stream=self.name) from error
