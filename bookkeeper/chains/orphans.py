"""Ledgers that belong to a chain by their tags, and that its node does not name.

A crash leaves them: made and not yet named, or not named any more and not yet deleted. A ledger that was made a moment
ago may be named at the next. So only those above an age are orphans, and the chain is asked after the ledgers were
listed. A chain whose ledgers carry their owner's epoch can be certain: a former owner names nothing any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import NoSuchLedgerError
from bookkeeper.ids import LedgerId
from bookkeeper.ledger.metadata import LedgerMetadata

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

ORPHAN_AGE_S: Final = 3600.0
"""A younger ledger is never an orphan: its writer may be about to name it."""


@dataclass(frozen=True, slots=True)
class OrphanLedger:
    """A ledger that nothing refers to."""

    ledger: LedgerId
    age_s: float
    """By the clocks of its creator and of this process."""
    length: int
    """Bytes in it; 0 as long as it is not closed."""
    tags: Mapping[str, bytes]


async def find_orphans(
    client: BookKeeper,
    tags: Mapping[str, bytes],
    needed: Callable[[Sequence[OrphanLedger]], Awaitable[Collection[int]]],
    now_ms: int,
    *,
    older_than_s: float = ORPHAN_AGE_S,
) -> tuple[OrphanLedger, ...]:
    """Find the ledgers that carry all of ``tags``, are old enough, and are not needed. Removes nothing.

    ``needed`` gets the candidates, and returns the ids of those that something names or may still name. ``now_ms`` is
    milliseconds since 1970. The metadata of every ledger of the cluster are read. A ledger whose creator stored no time
    is never an orphan.

    Raises:
        MetadataError. And what ``needed`` raises.
    """
    found: list[OrphanLedger] = []
    async for ledger_id in client.list_ledgers():
        try:
            metadata = (await client.metadata_store.ledgers.read(ledger_id)).value
        except NoSuchLedgerError:
            continue
        if (orphan := _candidate(ledger_id, metadata, tags, now_ms, older_than_s)) is not None:
            found.append(orphan)
    if not found:
        return ()
    kept = await needed(found)
    return tuple(orphan for orphan in found if orphan.ledger not in kept)


def _candidate(
    ledger: LedgerId, metadata: LedgerMetadata, tags: Mapping[str, bytes], now_ms: int, older_than_s: float
) -> OrphanLedger | None:
    if metadata.ctime_ms is None or any(metadata.custom.get(key) != value for key, value in tags.items()):
        return None
    age_s = (now_ms - metadata.ctime_ms) / 1000
    if age_s < older_than_s:
        return None
    return OrphanLedger(ledger, age_s, metadata.length if metadata.is_closed else 0, dict(metadata.custom))


async def delete_orphans(client: BookKeeper, orphans: Sequence[OrphanLedger]) -> None:
    """Delete what ``find_orphans`` found. It is no error if one is gone already. Raises BookKeeperError."""
    for orphan in orphans:
        try:
            await client.delete_ledger(orphan.ledger)
        except NoSuchLedgerError:
            continue
