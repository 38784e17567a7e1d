"""Batches that the gateway which owns a stream publishes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from segments.protocol import segments_pb2 as pb
from segments.protocol.publish_messages import get_published, put_key, put_rows
from segments.publish import BatchKey, PublishedBatch, StagedRows
from segments.remote.gateway_channels import GatewayChannels
from segments.remote.message_writer import ENTRIES_BYTES, too_large


class RemotePublisher:
    """Publishes batches through gateways. It claims nothing: the stream stays with its gateway."""

    def __init__(self, channels: GatewayChannels, stream: str) -> None:
        self._channels, self._stream = channels, stream

    async def publish(self, key: BatchKey | None, staged: Sequence[StagedRows]) -> PublishedBatch:
        """Make a batch visible: whole, in the order of ``staged``, behind what the gateway has to append, once.

        Args:
            key: what it is known by; None: it is new in any case, and the call is not repeated if it got no answer.

        Raises:
            BatchRefusedError: nothing was published. GatewayTooOldError. StreamUnavailableError, StreamNotReadyError:
            it may have been published, where the error's ``outcome`` says so; publishing it again, with its key, tells.
        """
        if (size := sum(len(entry) for each in staged for entry in each.entries)) > ENTRIES_BYTES:
            raise too_large(self._stream, size, ENTRIES_BYTES)
        request = pb.PublishRequest(
            stream=self._stream, key=None if key is None else put_key(key), rows=map(put_rows, staged)
        )
        reply = await self._channels.call("Append.Publish", request, stream=self._stream, repeat=key is not None)
        return get_published(reply)

    async def prepare(self, app: str) -> None:
        """Nothing: the gateway makes the ledger when the batch comes."""

    async def clean(self, app: str | None = None, own: Collection[str] = ()) -> list[int]:
        """Nothing: the gateway deletes what is left with the application's next batch."""
        return []

    async def close(self) -> None:
        """The stream stays with its gateway."""
