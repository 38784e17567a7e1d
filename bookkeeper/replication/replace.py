"""Finding another bookie for a copy and bringing it there: one fragment, or as many targets as it takes.

The target is writable, not in the fragment's ensemble, and chosen as for a new ledger (quarantined ones last). A
target that fails is left for another one; a source that fails is not the target's fault.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_record import LedgerRecord
from bookkeeper.errors import IllegalOperationError, MetadataConflictError, NotEnoughBookiesError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.replication.copies import Copy, copies_of
from bookkeeper.replication.fragment import CopyConfig, CopyOutcome
from bookkeeper.replication.repair import RepairContext, RepairResult, bring
from bookkeeper.replication.repair_lock import repair_lock
from bookkeeper.replication.throttle import Throttle

_log = logging.getLogger(__name__)

TARGETS_MAX: Final = 3
"""How many targets are tried for one copy."""


async def replicate_fragment(
    client: BookKeeper,
    ledger_id: int,
    first_entry: int,
    bookie: str,
    *,
    target: str | None = None,
    exclude: Collection[str] = (),
    bytes_per_s: int = 0,
    config: CopyConfig | None = None,
    on_copied: Callable[[int, int], None] = lambda entries, size: None,
    owner: str = "bookkeeper-py",
) -> RepairResult:
    """Bring one fragment's share of ``bookie`` to another bookie, and put that one into its place (A1-A6).

    Works while ``bookie`` is up, and when it is gone for good, as long as one good copy of each entry can be read.
    After it was cut short it is simply called again: the metadata are as they were until the very end. Holds the
    lock of the ledger's repair meanwhile: without it a Java bookie that is the target may take what is being brought
    for a surplus copy, and drop it before it is swapped in.

    Args:
        first_entry: names the fragment.
        target: who takes its place; chosen if not given. ``bookie`` itself: its copy is completed where it is.
        exclude: bookies that are not chosen.
        bytes_per_s: not faster than this; 0: as fast as it goes.
        on_copied: told (entries, bytes) as the target acknowledges them.
        owner: who holds the lock, for people who look at it.

    Raises:
        NoSuchLedgerError: there is none.
        MetadataConflictError: somebody else holds the lock of this ledger's repair; nothing was done.
        MetadataError: the lock was lost on the way (the session has expired); the metadata are as they were.
        IllegalOperationError: no such fragment, ``bookie`` is not in it, or ``target`` is.
        LedgerFencedError: the last fragment of a ledger that is not closed: recover it first.
        NotEnoughBookiesError: nobody is there to take its place.
        DataMissingError, BookieError, DigestMismatchError: an entry could not be read, or not be written; the metadata
            are as they were.
        MetadataUnavailableError: whether the swap was done is not known; call again.
    """
    async with repair_lock(client.services.metadata, LedgerId(ledger_id), owner) as holder:
        if holder is not None:
            raise MetadataConflictError(f"{holder} repairs ledger {ledger_id} now (the lock says so): try again later")
        return await replicate_unlocked(
            client,
            ledger_id,
            first_entry,
            bookie,
            target=target,
            exclude=exclude,
            bytes_per_s=bytes_per_s,
            config=config,
            on_copied=on_copied,
            locked=True,
        )


async def replicate_unlocked(
    client: BookKeeper,
    ledger_id: int,
    first_entry: int,
    bookie: str,
    *,
    target: str | None = None,
    exclude: Collection[str] = (),
    bytes_per_s: int = 0,
    config: CopyConfig | None = None,
    on_copied: Callable[[int, int], None] = lambda entries, size: None,
    locked: bool = False,
) -> RepairResult:
    """The same without taking the lock: where all bookies are of this package, for they drop no surplus copies;
    or ``locked``: the caller holds it."""
    services = client.services
    shop = RepairContext(
        services=services,
        config=config or CopyConfig(),
        throttle=Throttle(bytes_per_s),
        on_copied=on_copied,
        locked=locked,
    )
    ledgers, number = services.metadata.ledgers, LedgerId(ledger_id)
    record = LedgerRecord(ledgers, number, await ledgers.read(number, fresh=True))
    copies = [copy for copy in copies_of(record.metadata, BookieId(bookie)) if copy.first_entry == first_entry]
    if not copies:
        raise IllegalOperationError(
            f"ledger {ledger_id} has no fragment that begins at {first_entry} and names {bookie}"
        )
    if target is not None:
        brought = await bring(shop, record, copies[0], BookieId(target))
    else:
        brought = await replace_copy(shop, record, copies[0], frozenset(map(BookieId, exclude)))
    if brought.error is not None:
        raise brought.error
    return brought


async def replace_copy(
    shop: RepairContext,
    record: LedgerRecord,
    copy: Copy,
    exclude: Collection[BookieId] = (),
    only: Collection[BookieId] = (),
) -> RepairResult:
    """Bring ``copy`` to somebody (of ``only``, if that is given), the next one if a target fails; how the last
    attempt ended.

    Raises: NotEnoughBookiesError: nobody is there, or nobody is left.
    """
    tried: set[BookieId] = set(exclude)
    for _ in range(TARGETS_MAX):
        target = await _choose(shop, record, copy, tried, only)
        brought = await bring(shop, record, copy, target)
        if brought.outcome is not CopyOutcome.FAILED or not brought.target_at_fault:
            return brought
        _log.warning("ledger %d: %s cannot take %s: %s", record.ledger_id, target, copy, brought.error)
        shop.services.watcher.quarantine(target)
        tried.add(target)
        await record.refresh()
    return brought


async def _choose(
    shop: RepairContext, record: LedgerRecord, copy: Copy, exclude: Collection[BookieId], only: Collection[BookieId]
) -> BookieId:
    watcher, metadata = shop.services.watcher, record.metadata
    ensemble = metadata.fragment_of(copy.first_entry).ensemble
    for fresh in (False, True):  # the list may be old: look again before saying that nobody is there
        if fresh:
            await watcher.refresh()
        candidates = [b for b in watcher.candidates() if b not in exclude and (not only or b in only)]
        doubtful = [bookie for bookie in candidates if watcher.is_quarantined(bookie)]
        chosen = shop.services.placement.replace(metadata.spec, ensemble, [copy.bookie], candidates, avoided=doubtful)
        if copy.bookie in chosen:
            return chosen[copy.bookie]
    others = sorted({b for b in watcher.writable if b not in exclude and (not only or b in only)})
    raise NotEnoughBookiesError(
        f"nobody can take the place of {copy.bookie}: writable and allowed are {', '.join(others) or 'none'}, "
        f"of {', '.join(ensemble)} the fragment consists already"
    )
