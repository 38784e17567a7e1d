"""The ledgers of a stream: how one is made and tagged, and how one that nothing needs is deleted."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle

_log = logging.getLogger(__name__)

NewLedger = Callable[[], Awaitable["WriteHandle"]]
"""Makes a ledger for the next segment, with the stream's replication and tags. Raises BookKeeperError."""


async def delete_quietly(client: BookKeeper, ledger: int) -> bool:
    """Delete a ledger that nothing refers to; True if it is gone. Otherwise a tool finds it by its tags."""
    try:
        await client.delete_ledger(ledger)
    except NoSuchLedgerError:
        pass
    except BookKeeperError as error:
        _log.warning("ledger %d is not needed any more and could not be deleted: %s", ledger, in_words(error))
        return False
    return True


async def delete_all(client: BookKeeper, ledgers: Iterable[int]) -> list[int]:
    """Delete ledgers; return those that are gone."""
    return [ledger for ledger in ledgers if await delete_quietly(client, ledger)]
