"""Finds another bookie for a copy and copies it there; tries further targets if one fails.

A target is writable, not in the fragment's ensemble, and chosen as for a new ledger (quarantined ones last). If a
target fails, another one is tried. A source that fails does not count against the target.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Final

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.errors import IllegalOperationError, MetadataConflictError, NotEnoughBookiesError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.replication.config import CopyConfig
from bookkeeper.replication.copying.copies import Copy, copies_of
from bookkeeper.replication.copying.fragment import CopyOutcome
from bookkeeper.replication.copying.repair import RepairContext, RepairResult, copy_fragment
from bookkeeper.replication.copying.repair_lock import repair_lock
from bookkeeper.replication.copying.throttle import Throttle

_log = logging.getLogger(__name__)

TARGETS_MAX: Final = 3
"""Targets that are tried for one copy."""


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
    """Copy one fragment's share of ``bookie`` to another bookie, and put that bookie into its place (A1-A6).

    ``bookie`` may be up or gone for good, as long as one good copy of each entry can be read. If the call is cut short,
    call it again: metadata change only at the very end. The call holds the lock of the ledger's repair. Without it, a
    Java bookie that is the target could take the new copy for a surplus one and drop it before it is swapped in.

    Args:
        first_entry: the fragment's first entry, which names it.
        target: the bookie that takes its place; chosen if not given. With ``bookie`` itself its copy is completed.
        exclude: bookies that are not chosen.
        bytes_per_s: the greatest speed; 0 sets no limit.
        on_copied: called with (entries, bytes) when the target has acknowledged them.
        owner: name of the lock's holder, for people who look at it.

    Raises:
        NoSuchLedgerError: the ledger does not exist.
        MetadataConflictError: somebody else holds the lock of this ledger's repair; nothing was done.
        MetadataError: the lock was lost on the way (the session has expired); the metadata are unchanged.
        IllegalOperationError: there is no such fragment, ``bookie`` is not in it, or ``target`` is.
        LedgerFencedError: it is the last fragment of a ledger that is not closed: recover the ledger first.
        NotEnoughBookiesError: no bookie can take its place.
        DataMissingError, BookieError, DigestMismatchError: an entry could not be read or written; the metadata are
            unchanged.
        MetadataUnavailableError: it is not known whether the swap was done; call again.
    """
    async with repair_lock(client.services.metadata, LedgerId(ledger_id), owner) as holder:
        if holder is not None:
            raise MetadataConflictError(f"{holder} repairs ledger {ledger_id} now and holds its lock: try again later")
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
    """As :func:`replicate_fragment`, but without taking the lock. Use it only with ``locked`` (the caller holds the
    lock), or where all bookies are of this package, because these drop no surplus copies."""
    services = client.services
    context = RepairContext(
        services=services,
        config=config or CopyConfig(),
        throttle=Throttle(bytes_per_s),
        on_copied=on_copied,
        locked=locked,
    )
    record = await LedgerView.read(services.metadata.ledgers, LedgerId(ledger_id))
    copies = [copy for copy in copies_of(record.metadata, BookieId(bookie)) if copy.first_entry == first_entry]
    if not copies:
        raise IllegalOperationError(
            f"ledger {ledger_id} has no fragment that begins at {first_entry} and names {bookie}"
        )
    if target is not None:
        copied = await copy_fragment(context, record, copies[0], BookieId(target))
    else:
        copied = await replace_copy(context, record, copies[0], frozenset(map(BookieId, exclude)))
    if copied.error is not None:
        raise copied.error
    return copied


async def replace_copy(
    context: RepairContext,
    record: LedgerView,
    copy: Copy,
    exclude: Collection[BookieId] = (),
    only: Collection[BookieId] = (),
) -> RepairResult:
    """Copy ``copy`` to another bookie (one of ``only``, if given). If a target fails, the next one is tried. Returns
    how the last attempt ended.

    Raises: NotEnoughBookiesError: no bookie can take it, or all that can have failed.
    """
    tried: set[BookieId] = set(exclude)
    for _ in range(TARGETS_MAX):
        target = await _choose(context, record, copy, tried, only)
        copied = await copy_fragment(context, record, copy, target)
        if copied.outcome is not CopyOutcome.FAILED or not copied.target_at_fault:
            return copied
        _log.warning(
            "ledger %d: %s could not take %s (%s): another bookie is tried",
            record.ledger_id,
            target,
            copy,
            in_words(copied.error) if copied.error is not None else "no reason is known",
        )
        context.services.watcher.quarantine(target)
        tried.add(target)
        await record.refresh()
    return copied


async def _choose(
    context: RepairContext, record: LedgerView, copy: Copy, exclude: Collection[BookieId], only: Collection[BookieId]
) -> BookieId:
    watcher, metadata = context.services.watcher, record.metadata
    ensemble = metadata.fragment_of(copy.first_entry).ensemble
    for fresh in (False, True):  # the list may be old: look again before saying that nobody is there
        if fresh:
            await watcher.refresh()
        candidates = [b for b in watcher.candidates() if b not in exclude and (not only or b in only)]
        doubtful = [bookie for bookie in candidates if watcher.is_quarantined(bookie)]
        chosen = context.services.placement.replace(
            metadata.spec, ensemble, [copy.bookie], candidates, avoided=doubtful
        )
        if copy.bookie in chosen:
            return chosen[copy.bookie]
    others = sorted({b for b in watcher.writable if b not in exclude and (not only or b in only)})
    raise NotEnoughBookiesError(
        f"no bookie can take the place of {copy.bookie}: it has to be writable, allowed, and not in the fragment "
        f"already; writable and allowed are {', '.join(others) or 'none'}, and the fragment has {', '.join(ensemble)}"
    )
