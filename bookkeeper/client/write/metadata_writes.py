"""Changes the ensemble of a ledger, or closes it, by compare-and-set on its metadata.

A compare-and-set that loses starts again from what is stored. After a write of unknown outcome the metadata are read
until the outcome is known. The writer confirms nothing meanwhile; its own deadline ends the wait, not this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.services import ClientServices
from bookkeeper.errors import (
    LedgerClosedError,
    LedgerFencedError,
    MetadataConflictError,
    MetadataUnavailableError,
    NoSuchLedgerError,
    SessionExpiredError,
)
from bookkeeper.ids import BookieId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.ledger.ensemble.replan import replan, still_failed
from bookkeeper.ledger.write import ChangeEnsemble, ChangeFailure
from bookkeeper.meta import SessionState

ChooseStandIns = Callable[[LedgerMetadata, Sequence[BookieId]], Mapping[BookieId, BookieId]]
"""(stored metadata, bookies to replace) -> a stand-in for each, as far as there are enough."""

STORE_AWAY = (MetadataUnavailableError, SessionExpiredError)
RETRY_S = 0.2
"""Seconds between two attempts to reach a metadata store that does not answer."""


async def change_ensemble(
    services: ClientServices, record: LedgerView, change: ChangeEnsemble, choose: ChooseStandIns
) -> LedgerMetadata | ChangeFailure:
    """Replace the failed bookies from ``change.first_entry`` on.

    Returns the metadata that are stored then, or why the change was not made.
    """
    if services.metadata.store.session is not SessionState.CONNECTED:
        return ChangeFailure.STORE_AWAY
    while True:
        stored = record.versioned
        failed = still_failed(stored.value, change.failed)
        stand_ins = choose(stored.value, failed)
        try:
            if failed and not stand_ins:
                return ChangeFailure.NO_SPARE
            new = replan(stored.value, change.first_entry, stand_ins)
            if new is stored.value:
                return new
            return await record.write(new, stored)
        except (MetadataConflictError, *STORE_AWAY):  # a write that lost may have been done, and been replaced since
            if (ended := await _refresh_until_known(record)) is not None:
                return ended
        except NoSuchLedgerError:
            return ChangeFailure.DELETED
        except LedgerFencedError:
            return ChangeFailure.IN_RECOVERY
        except LedgerClosedError:
            return ChangeFailure.CLOSED


async def close_ledger(
    services: ClientServices, record: LedgerView, last_entry: int, length: int, timeout_s: float
) -> LedgerMetadata:
    """Close the ledger at ``last_entry``, by compare-and-set from OPEN. Returns the metadata that are stored then.

    Raises:
        LedgerFencedError, LedgerClosedError, NoSuchLedgerError: this writer may not close the ledger any more.
        MetadataUnavailableError: the store did not answer for ``timeout_s``; a recovery will close the ledger.
    """
    away: Exception | None = None
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                stored = record.versioned
                new = stored.value.close(last_entry, length)
                try:
                    return new if new is stored.value else await record.write(new, stored)
                except MetadataConflictError:
                    pass
                except STORE_AWAY as error:
                    away = error
                    await asyncio.sleep(RETRY_S)
                if (unknown := await _refresh_until_known(record)) is not None:
                    raise NoSuchLedgerError(f"ledger {record.ledger_id} was not closed: {unknown.value}")
    except TimeoutError:
        raise MetadataUnavailableError(
            f"ledger {record.ledger_id} could not be closed, because the metadata store does not answer; call close() "
            "again, or let a recovery (bk ledger recover, or open_ledger) close it"
        ) from away


async def _refresh_until_known(record: LedgerView) -> ChangeFailure | None:
    """After a write of unknown outcome: read the metadata until the store answers.

    A write that lost has an unknown outcome, too. Its reply may have been lost; if somebody then wrote over it, the
    repeated write meets a conflict.
    """
    while True:
        try:
            await record.refresh()
        except NoSuchLedgerError:
            return ChangeFailure.DELETED
        except STORE_AWAY:
            await asyncio.sleep(RETRY_S)
        else:
            return None


def choose_stand_ins(
    services: ClientServices, metadata: LedgerMetadata, failed: Collection[BookieId], avoided: Collection[BookieId] = ()
) -> Mapping[BookieId, BookieId]:
    """Writable bookies outside the ensemble, those in quarantine last."""
    watcher = services.watcher
    ensemble = metadata.last_fragment.ensemble
    doubtful = watcher.quarantined().union(avoided)
    return services.placement.replace(metadata.spec, ensemble, failed, watcher.candidates(), avoided=doubtful)


async def refresh_until_answered(services: ClientServices, record: LedgerView, what: str) -> None:
    """Read the metadata until the store answers, for ``metadata_timeout_ms`` at most.

    Args:
        what: what follows the ledger's id in the error, with ``{}`` for the reason.

    Raises:
        MetadataUnavailableError: the store did not answer in time.
        NoSuchLedgerError: the ledger was deleted.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + services.config.metadata_timeout_ms / 1000
    while True:
        try:
            await record.refresh()
            return
        except STORE_AWAY as error:
            if loop.time() >= deadline:
                raise MetadataUnavailableError(f"ledger {record.ledger_id}{what.format(error)}") from error
            await asyncio.sleep(RETRY_S)
