"""Waits until a failed bookie answers again, then reads the ledger's metadata, which may have changed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.services import ClientServices
from bookkeeper.errors import BookieError, MetadataUnavailableError, SessionExpiredError
from bookkeeper.ids import NO_ENTRY, BookieId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.net.backoff import Backoff
from bookkeeper.net.connection import BookieConnection
from bookkeeper.wire import ReadEntry

PROBE_TIMEOUT_S = 1.0
"""A bookie that accepts a connection but does not answer within so many seconds counts as still away."""


def pauses(services: ClientServices) -> Iterator[float]:
    """Seconds to wait before each attempt at one bookie."""
    config = services.config
    backoff = Backoff(first_s=config.reconnect_delay_min_ms / 1000, max_s=config.reconnect_delay_max_ms / 1000)
    return backoff.delays(services.seams.rng)


async def watch_incarnation(
    services: ClientServices, record: LedgerView, bookie: BookieId, try_now: asyncio.Event, delays: Iterator[float]
) -> tuple[BookieConnection, LedgerMetadata]:
    """Wait until ``bookie`` answers, then read the metadata, after a sync. Setting ``try_now`` ends a pause at once.

    ``delays`` continue where the last watch of this bookie stopped, so that a bookie that answers requests and refuses
    adds is not asked again and again. The connection returned has answered before the metadata were read.

    Raises:
        NoSuchLedgerError: the ledger was deleted.
    """
    for delay in delays:
        try:
            async with asyncio.timeout(max(delay, services.pool.pause_left(bookie))):
                await try_now.wait()
            services.pool.forgive(bookie)
        except TimeoutError:
            pass
        try_now.clear()
        try:
            connection = await services.pool.get(bookie, ConnectionPurpose.MAIN)
            await connection.request(ReadEntry(record.ledger_id, NO_ENTRY), PROBE_TIMEOUT_S)
            metadata = await record.refresh()
        except (MetadataUnavailableError, SessionExpiredError):
            continue
        except BookieError:
            if (stale := services.pool.ready(bookie)) is not None:
                services.pool.retire(bookie, stale)
            continue
        if not connection.closed:
            return connection, metadata
    raise AssertionError("back-off never ends")
