"""Shell: who publishes batches claims the stream, also from a gateway that is gone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from bookkeeper.leases.lease import renewed_by
from segments.chain import StreamChain, StreamHead
from segments.error_translation import worded
from segments.errors import StreamOwnedError
from segments.names import stream_path
from segments.write.state.stream_owner import StreamOwner, claim_nonce

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

_log = logging.getLogger(__name__)


async def claim_stream(client: BookKeeper, node: StreamHead, name: str, *, take_over: bool) -> StreamOwner:
    """Claim the stream, if nobody has it who may be alive.

    Args:
        name: the new owner's.
        take_over: also from a writer that may be alive.

    Raises: as ``StreamPublisher.open``.
    """
    at_gateway: list[StreamChain] = []
    gone: tuple[int, str] | None = None

    def check(chain: StreamChain) -> None:
        if take_over or (chain.epoch, chain.location) == gone:
            return
        if chain.location:
            at_gateway.append(chain)
            raise StreamOwnedError(
                f"the gateway at {chain.location} owns stream {node.name}: let it publish batches (Spark: "
                f'option("gateway", "grpc://{chain.location}"); a program: a publisher of a stream behind it)',
                stream=node.name,
            )
        if chain.open_segment is not None:
            raise StreamOwnedError(
                f"stream {node.name} is open for writing by {chain.owner or 'a writer'}, and batches are "
                "published by the stream's owner. Close that writer; if its program is gone, "
                f"`bk stream roll {node.name}` ends what it left open",
                stream=node.name,
            )

    metadata = client.metadata_store
    while True:
        try:
            return await StreamOwner.claim(node, name, claim_nonce(client), check)
        except StreamOwnedError:
            if not at_gateway:
                raise
            lease = stream_path(metadata, node.stream_id, "lease")
            with worded(f"looking for the gateway that owns stream {node.name}", node.name):
                if await renewed_by(metadata.store, lease, client.services.seams.clock) is not None:
                    raise
            left = at_gateway.pop()
            gone = left.epoch, left.location
            _log.warning("stream %s is taken from the gateway at %s, which is gone", node.name, left.location)
