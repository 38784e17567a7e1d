"""Goes on from metadata that were put back to an older state: asks the bookies what they hold, then accepts the loss.

Every known bookie is asked which ledgers it holds and which it has dropped. None of these ids is given out again, and
ledgers that metadata do not know are kept for a time. Bookies that do not answer are named; the operator must say for
each that the cluster goes on without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.client.bookie_request import held_entries_of, reply_of
from bookkeeper.client.bookies.bookie_pool import BookiePool
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.services import ClientServices
from bookkeeper.errors import BookieUnavailableError, BookKeeperError, IllegalOperationError, MalformedFrameError
from bookkeeper.ids import Address, BookieId, IdRanges, LedgerId
from bookkeeper.meta.acceptance import accept as accept_in_store
from bookkeeper.wire import ListEntries, ledgers_dropped, ledgers_held

KEEP_S: Final = 7 * 24 * 3600
"""Seconds for which bookies keep ledgers that metadata do not know."""

START_MAX: Final = 1 << 62
"""Pages begin below this id; a page has as many ranges as fit into a frame."""

RANGES_MAX: Final = 1 << 24
"""Ranges of ledgers that one bookie may list."""

HELD_MAX: Final = 1 << 26
"""Ledgers that one bookie may say it holds."""


@dataclass(slots=True)
class HeldLedgers:
    """The bookies' answers."""

    asked: dict[BookieId, int] = field(default_factory=dict)
    """The bookies that answered, each with the number of ledgers it holds."""
    away: dict[BookieId, str] = field(default_factory=dict)
    """The bookies that did not answer, each with the reason."""
    unknown: dict[LedgerId, list[BookieId]] = field(default_factory=dict)
    """Ledgers of which the metadata know nothing, not even that they were deleted, each with the bookies that hold
    it."""
    used: IdRanges = field(default_factory=IdRanges)
    """Ledger ids that must not be given out again."""


async def list_held(client: BookKeeper, addresses: Mapping[BookieId, Address] | None = None) -> HeldLedgers:
    """Ask every known bookie what it holds. Changes nothing.

    Args:
        addresses: addresses of bookies that are not registered and whose ids are no addresses.

    Raises:
        MetadataError: the known bookies, or the ledgers, cannot be read from the store.
    """
    metadata, services = client.services.metadata, client.services
    where = dict(addresses or {})

    async def address_of(bookie: BookieId) -> Address:
        if bookie in where:
            return where[bookie]
        try:
            return await metadata.bookies.address(bookie)
        except BookieUnavailableError:
            try:
                return Address.parse(bookie)
            except ValueError:
                raise BookieUnavailableError(
                    f"{bookie} is not registered, so its address is not known: give it with --bookie {bookie}=HOST:PORT"
                ) from None

    found = HeldLedgers()
    held_entries_of = IdRanges()
    async for ledger_id in metadata.ledgers.list():
        held_entries_of.add(ledger_id)
    found.used.update(held_entries_of)
    config = replace(services.config, protocol="v3")
    pool = BookiePool(services.seams.net, services.seams.rng, config, address_of)
    asking = replace(services, pool=pool, config=config)
    pool.begin()
    try:
        known = sorted({*await metadata.bookies.known(), *where})
        await asyncio.gather(*(_list_one(asking, bookie, held_entries_of, found) for bookie in known))
    finally:
        await pool.close()
    deleted = await metadata.ledgers.deleted.near(found.unknown)
    found.unknown = {ledger: holders for ledger, holders in sorted(found.unknown.items()) if ledger not in deleted}
    return found


async def accept(
    client: BookKeeper, held: HeldLedgers, *, keep_s: int = KEEP_S, without: frozenset[str] = frozenset()
) -> int:
    """Go on from what the metadata show. Returns the lowest ledger id that can be given out from now on.

    Raises:
        IllegalOperationError: a bookie did not answer and is not in ``without``.
        MetadataError: as :func:`bookkeeper.meta.acceptance.accept`.
    """
    missing = sorted(bookie for bookie in held.away if bookie not in without)
    if missing:
        reasons = "; ".join(f"{bookie}: {held.away[bookie]}" for bookie in missing)
        raise IllegalOperationError(
            f"not every bookie has answered ({reasons}). Stopped bookies can start only after the loss was accepted. "
            "Go on without a bookie by --without ID: then new ids begin far above, and what it holds is not listed"
        )
    name = f"{client.services.seams.rng.getrandbits(64):016x}"
    used = [last for _, last in held.used]
    return await accept_in_store(
        client.services.metadata, new_id=name, used=used, keep_s=keep_s, unasked=bool(held.away)
    )


async def _list_one(services: ClientServices, bookie: BookieId, listed: IdRanges, found: HeldLedgers) -> None:
    try:
        held = await _list(services, bookie, ledgers_held)
        dropped = await _list(services, bookie, ledgers_dropped)
        found.asked[bookie] = held_count(bookie, held)
    except BookKeeperError as error:
        found.away[bookie] = str(error)
        return
    found.used.update(held)
    found.used.update(dropped)
    for first, last in held:
        for ledger_id in range(first, last + 1):
            if ledger_id not in listed:
                found.unknown.setdefault(LedgerId(ledger_id), []).append(bookie)


async def _list(services: ClientServices, bookie: BookieId, which: Callable[[int], LedgerId]) -> list[tuple[int, int]]:
    """The ranges of ledger ids that a bookie answers, read page by page."""
    found: list[tuple[int, int]] = []
    start = 0
    while start < START_MAX and (page := await _page(services, bookie, which(start))):
        check_ranges(bookie, start, page, len(found))
        found += page
        start = page[-1][1] + 1
    return found


def check_ranges(bookie: BookieId, start: int, page: Sequence[tuple[int, int]], before: int) -> None:
    """Check a page of ranges that begins at ``start`` and follows ``before`` others: a list comes to an end.

    Raises:
        MalformedFrameError: it does not; nothing that the bookie says is believed.
    """
    if page[0][0] < start:
        raise MalformedFrameError(f"{bookie} lists id {page[0][0]} where it was asked for those from {start} on")
    if before + len(page) > RANGES_MAX:
        raise MalformedFrameError(f"{bookie} lists more than {RANGES_MAX} ranges of ledgers, and goes on")


def held_count(bookie: BookieId, ranges: Sequence[tuple[int, int]]) -> int:
    """How many ledgers a bookie says it holds. Each of them is looked at.

    Raises:
        MalformedFrameError: more than a bookie can hold; nothing that it says is believed.
    """
    count = sum(last - first + 1 for first, last in ranges)
    if count > HELD_MAX:
        raise MalformedFrameError(f"{bookie} says that it holds {counted(count, 'ledger')}; {HELD_MAX} are believed")
    return count


async def _page(services: ClientServices, bookie: BookieId, which: LedgerId) -> list[tuple[int, int]]:
    what = f"ledgers of {bookie}"
    return list(held_entries_of(await reply_of(services, bookie, ListEntries(which), what), what).runs())
