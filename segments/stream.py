"""A stream, as an application holds it: writers, producers, and what it says of itself."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from segments.chain import StreamChain, StreamRecord, StreamSegment
from segments.config import StreamConfig
from segments.error_translation import worded
from segments.stream_settings import read_settings
from segments.write.opening import Opening, SharedWriter, open_writer
from segments.write.producer import GapRule, Producer
from segments.write.writer import Writer

if TYPE_CHECKING:
    from bookkeeper import BookKeeper


class WriterOptions(TypedDict, total=False):
    """Options of a writer."""

    owner: str | None
    """Who writes, for people; by default the host and the process."""
    location: str
    """Where the writer can be reached, if it can: other gateways send their callers there."""


class Stream:
    """One stream of a namespace."""

    def __init__(self, client: BookKeeper, name: str, stream_id: str, config: StreamConfig) -> None:
        self.name = name
        self.id = stream_id
        """Stays the same when the stream is renamed, and is never used again."""
        self.config = config
        """The settings as they were read last."""
        self.client = client
        self.record = StreamRecord(client.metadata_store, stream_id, name)
        self._shared: SharedWriter | None = None

    def __repr__(self) -> str:
        return f"<Stream {self.name} ({self.id})>"

    # -- writing ----------------------------------------------------------------------------------------

    def writer(self, **options: Unpack[WriterOptions]) -> Opening[Writer]:
        """Take the stream over and write to it: ``async with stream.writer() as writer``. The former writer, wherever
        it is, can append nothing more.

        Raises (when awaited or entered):
            StreamSealedError, StreamNotFoundError.
            StreamUnavailableError: too few bookies answer, or the metadata store does not; nothing is lost.
            OwnershipLostError: another writer took the stream over meanwhile.
        """
        return Opening(partial(open_writer, self.client, self.record, self.read_config, **options))

    def producer(
        self,
        name: str,
        *,
        epoch: int | None = None,
        gap: GapRule = "strict",
        **options: Unpack[WriterOptions],
    ) -> Opening[Producer]:
        """Open an idempotent producer: ``async with stream.producer(name) as producer``. The producers of one Stream
        object share a writer, which takes the stream over like writer().

        With ``gap="strict"`` a sequence number that is left out is refused; with ``"monotonic"`` they need only rise.

        Raises (when awaited or entered):
            ProducerFencedError: ``epoch`` is lower than the one that the name has. StreamNameError. And as writer().
        """
        if self._shared is None:
            self._shared = SharedWriter(partial(open_writer, self.client, self.record, self.read_config, **options))
        return Opening(partial(self._shared.producer, name, epoch=epoch, gap=gap))

    # -- what it says -----------------------------------------------------------------------------------

    async def read_config(self) -> StreamConfig:
        """Read the settings as they are now. Raises: StreamNotFoundError, StreamMetadataError."""
        self.config = await read_settings(self.client.metadata_store, self.name, self.id)
        return self.config

    async def chain(self) -> StreamChain:
        """Read the stream's record as it is now. Raises: StreamNotFoundError, StreamMetadataError."""
        with worded(f"reading the record of stream {self.name}", self.name):
            return (await self.record.read())[0]

    async def segments(self) -> tuple[StreamSegment, ...]:
        """The segments, oldest first. What an open one holds is not known here. Raises: as chain()."""
        return (await self.chain()).segments

    # -- the end ----------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Nothing is held open by a stream itself; its writers, producers and readers are closed on their own."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
