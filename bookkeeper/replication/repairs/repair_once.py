"""Repairs one ledger now, for an operator: takes its lock, and tries until it is whole or nothing more can be done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import IllegalOperationError
from bookkeeper.ids import LedgerId
from bookkeeper.replication.copying.repair import RepairContext
from bookkeeper.replication.copying.repair_lock import repair_lock
from bookkeeper.replication.copying.throttle import Throttle
from bookkeeper.replication.repairs.ledger_repair import GracePeriods, LedgerRepair, repair_ledger


async def repair_once(
    client: BookKeeper,
    ledger_id: LedgerId,
    *,
    owner: str,
    grace_s: float,
    bytes_per_s: int = 0,
    report: Callable[[str], None] = lambda what: None,
    on_copied: Callable[[int, int], None] = lambda entries, size: None,
) -> LedgerRepair:
    """Repair one ledger, and remove its mark if it is whole. The result says what was copied, or why not.

    Args:
        owner: the name of the lock's holder, for people who look at it.
        grace_s: how long an open ledger whose last fragment names a bookie that is gone is left to its writer. The
            call waits for so long, and recovers the ledger then if its writer has not moved on.
        bytes_per_s: the greatest speed of all copies together; 0 sets no limit.
        report: called with what is being done: a few words for people.
        on_copied: called with (entries, bytes) of each run that was copied.

    Raises:
        IllegalOperationError: somebody else repairs the ledger now. Nothing was done.
        NoSuchLedgerError: there is no such ledger.
        MetadataError: the metadata cannot be read.
    """
    metadata, loop = client.metadata_store, asyncio.get_running_loop()
    await metadata.ledgers.read(ledger_id, fresh=True)
    context = RepairContext(services=client.services, throttle=Throttle(bytes_per_s), on_copied=on_copied, locked=True)
    graces = GracePeriods(grace_s)
    async with repair_lock(metadata, ledger_id, owner) as holder:
        if holder is not None:
            raise IllegalOperationError(
                f"ledger {ledger_id} is being repaired by {holder}, who holds its lock: wait until that has ended"
            )
        while True:
            mark = await metadata.under_replication.read(ledger_id)
            done = await repair_ledger(context, ledger_id, graces, mark, report=report)
            if done.whole or done.until is None or len(done.problems) > 1:
                return done
            report(done.reason)
            await asyncio.sleep(max(0.0, done.until - loop.time()))
