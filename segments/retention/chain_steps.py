"""Changes of a stream's node by somebody who is not its writer: one compare-and-set each, made again after others'.

Truncation and removal need no ownership: the writer steps on from what they wrote. A change may depend on other values
of the stream, its holds, say; then all are compared in one write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from bookkeeper.errors import MetadataConflictError
from bookkeeper.meta.store import Check, settled_set_if
from segments.chain import RecentHead, StreamChain, encode_chain


async def change_chain(node: RecentHead, change: Callable[[StreamChain], StreamChain]) -> StreamChain:
    """Replace the node by ``change`` of it; returns what it is then. No change writes nothing.

    Raises:
        StreamNotFoundError. MetadataError: also if it is not known whether the change was made; make it again. And what
        ``change`` raises.
    """
    while True:
        chain, version = await node.read()
        changed = change(chain)
        if changed == chain:
            return chain
        try:
            await node.write(changed, version)
        except MetadataConflictError:
            continue
        return changed


async def change_chain_if(
    node: RecentHead,
    decide: Callable[[StreamChain], Awaitable[tuple[StreamChain, Sequence[Check]]]],
) -> StreamChain:
    """As ``change_chain``; ``decide`` also returns what the change depends on. It runs again after every conflict.

    Raises: as ``change_chain``.
    """
    while True:
        chain, version = await node.read()
        changed, conditions = await decide(chain)
        if changed == chain:
            return chain
        try:
            await settled_set_if(node.store, node.path, encode_chain(changed), version, conditions)
        except MetadataConflictError:
            continue
        return changed
