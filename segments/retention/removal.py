"""Deletes the ledgers that the node lists for removal: retention and truncation take them out of the chain before.

A crash at any point leaves the ledger in the list, and the next one who comes deletes it. So the node names every
ledger of the stream until it is gone, and a search for leaked ledgers is exact.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words
from segments.chain import StreamHead
from segments.error_translation import worded
from segments.retention.chain_steps import change_chain

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

_log = logging.getLogger(__name__)

AT_ONCE: Final = 16
"""Ledgers that are deleted at the same time."""


async def finish_removals(client: BookKeeper, node: StreamHead) -> tuple[int, ...]:
    """Delete the ledgers that the node lists for removal, and take them off the list; returns those that are gone.
    Pages that the node does not name any more are deleted, too.

    A ledger that cannot be deleted now stays on the list. For the client's grace time a deleted ledger can be brought
    back.

    Raises:
        StreamNotFoundError, StreamMetadataError.
    """
    with worded(f"removing ledgers of stream {node.name}", node.name):
        chain, _ = await node.recent.read()
        gone = await delete_ledgers(client, [each.ledger_id for each in chain.removing], node.name)
        if gone:
            await change_chain(node.recent, lambda chain: chain.forget(gone))
        await node.pages.delete_unnamed(chain)
    return gone


async def delete_ledgers(client: BookKeeper, ledgers: list[int], stream: str) -> tuple[int, ...]:
    """Delete ledgers, some at a time; returns those that are gone. The others are logged."""
    room = asyncio.Semaphore(AT_ONCE)

    async def delete(ledger: int) -> bool:
        async with room:
            try:
                await client.delete_ledger(ledger)
            except NoSuchLedgerError:
                pass
            except BookKeeperError as error:
                _log.warning("ledger %d of stream %s was not deleted: %s", ledger, stream, in_words(error))
                return False
            return True

    done = await asyncio.gather(*map(delete, ledgers))
    return tuple(ledger for ledger, is_gone in zip(ledgers, done, strict=True) if is_gone)
