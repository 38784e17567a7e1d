"""Asks bookies how much disk they have free, so that those with more get more new ledgers."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from bookkeeper.client.bookie_request import reply_of
from bookkeeper.client.services import ClientServices
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.ids import BookieId
from bookkeeper.wire import GetBookieInfo, InfoReply

_log = logging.getLogger(__name__)

AT_A_TIME: Final = 16
"""Bookies that are asked at the same time."""

_FREE: Final = 2
"""The bit that asks for the free bytes."""


async def follow_free_space(services: ClientServices) -> None:
    """Weigh the writable bookies by their free disk, again and again, until cancelled. One that does not answer keeps
    what it said before; one that never did is weighed as the median."""
    known: dict[BookieId, float] = {}
    while True:
        limit = asyncio.Semaphore(AT_A_TIME)
        writable = services.watcher.writable
        found = await asyncio.gather(*[_free(services, bookie, limit) for bookie in writable])
        known.update({bookie: free for bookie, free in zip(writable, found, strict=True) if free is not None})
        services.watcher.weights = {bookie: known[bookie] for bookie in writable if bookie in known} or None
        await asyncio.sleep(services.config.free_space_poll_ms / 1000)


async def _free(services: ClientServices, bookie: BookieId, limit: asyncio.Semaphore) -> float | None:
    what = f"disk space of {bookie}"
    async with limit:
        try:
            reply = await reply_of(services, bookie, GetBookieInfo(requested=_FREE), what)
        except BookKeeperError as error:
            _log.info("%s is not known: %s", what, in_words(error))
            return None
    return float(max(reply.free, 1)) if isinstance(reply, InfoReply) and reply.free is not None else None
