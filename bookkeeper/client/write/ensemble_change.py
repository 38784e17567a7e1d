"""Finding stand-ins for failed bookies and recording them: the shell of an ensemble change, and of a close.

Both are compare-and-sets that start again from what is stored whenever they lose. A write whose outcome is
unknown is followed by reading until it is known: the writer holds its confirms for so long, and its own
deadline ends that, not this file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

from bookkeeper.client.ledger_record import LedgerRecord
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
from bookkeeper.ledger.ensemble_change import replan, still_failed
from bookkeeper.ledger.writer import ChangeEnsemble, ChangeFailure
from bookkeeper.meta import SessionState

ChooseStandIns = Callable[[LedgerMetadata, Sequence[BookieId]], Mapping[BookieId, BookieId]]
"""(stored metadata, those to replace) -> stand-ins, for as many as there are."""

STORE_AWAY = (MetadataUnavailableError, SessionExpiredError)
RETRY_S = 0.2
"""Pause between two questions to a store that does not answer."""


async def change_ensemble(
    services: ClientServices, record: LedgerRecord, change: ChangeEnsemble, choose: ChooseStandIns
) -> LedgerMetadata | ChangeFailure:
    """Replace the failed bookies from ``change.first_entry`` on; what is stored then, or why it was not done."""
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
        except (MetadataConflictError, *STORE_AWAY):  # also one that lost may have been done, and replaced since
            if (ended := await _until_known(record)) is not None:
                return ended
        except NoSuchLedgerError:
            return ChangeFailure.DELETED
        except LedgerFencedError:
            return ChangeFailure.IN_RECOVERY
        except LedgerClosedError:
            return ChangeFailure.CLOSED


async def close_ledger(
    services: ClientServices, record: LedgerRecord, last_entry: int, length: int, timeout_s: float
) -> LedgerMetadata:
    """Close at ``last_entry``, by compare-and-set from OPEN; what is stored then.

    Raises:
        LedgerFencedError, LedgerClosedError, NoSuchLedgerError: it is not ours to close.
        MetadataUnavailableError: the store was away for ``timeout_s``; the ledger stays for a recovery to close.
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
                if (unknown := await _until_known(record)) is not None:
                    raise NoSuchLedgerError(f"ledger {record.ledger_id}: {unknown.value}")
    except TimeoutError:
        raise MetadataUnavailableError(
            f"ledger {record.ledger_id} could not be closed, the metadata store does not answer; call close() again, "
            "or let a recovery (bk ledger recover, or open_ledger) close it"
        ) from away


async def _until_known(record: LedgerRecord) -> ChangeFailure | None:
    """After a set of which nobody knows whether it was done: read until the store tells.

    One that lost is such a set, too: when its reply was lost, and somebody wrote over it before it was looked for, what
    is seen is a conflict.
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
    candidates = watcher.candidates()
    doubtful = [bookie for bookie in candidates if watcher.is_quarantined(bookie) or bookie in avoided]
    ensemble = metadata.last_fragment.ensemble
    return services.placement.replace(metadata.spec, ensemble, failed, candidates, avoided=doubtful)
