"""Ledgers that a journal left behind: made for a segment or a snapshot, and named by no node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from bookkeeper.chains.orphans import ORPHAN_AGE_S, OrphanLedger, delete_orphans, find_orphans
from journal_manager.backends.bookkeeper.error_translation import worded
from journal_manager.backends.bookkeeper.journal_owner import JournalOwner
from journal_manager.backends.bookkeeper.ledgers import journal_tags
from journal_manager.backends.bookkeeper.snapshot_index import SnapshotIndex
from journal_manager.journals.capabilities import Orphan

if TYPE_CHECKING:
    from bookkeeper import BookKeeper


class JournalOrphans:
    """Looks for them as the journal's owner.

    A ledger that carries the epoch of a former owner, and is not named, will never be: that owner is fenced. Ledgers
    of the present epoch are this writer's own, and it may be about to name them.
    """

    def __init__(self, client: BookKeeper, owner: JournalOwner, wall_ms: Callable[[], int]) -> None:
        self._client, self._owner, self._wall_ms = client, owner, wall_ms
        self._index = SnapshotIndex(owner.node)

    async def find(self, older_than_s: float = ORPHAN_AGE_S) -> tuple[OrphanLedger, ...]:
        """Find them. Raises JournalFencedError, JournalUnavailableError."""
        with worded(f"looking for ledgers that journal {self._owner.node.name} left behind"):
            return await find_orphans(
                self._client,
                journal_tags(self._owner.node.name),
                self._needed,
                self._wall_ms(),
                older_than_s=older_than_s,
            )

    async def _needed(self, found: Sequence[OrphanLedger]) -> Collection[int]:
        chain, _ = await self._owner.node.read()
        await self._owner.ensure_current()
        named = {int(segment.location) for segment in chain.segments}
        named |= {line.ledger for line in await self._index.offers()}
        named |= {line.ledger for line in (await self._index.read())[0]}
        ours = b"%d" % self._owner.token.epoch
        return named | {orphan.ledger for orphan in found if orphan.tags.get("epoch") == ours}

    async def sweep(self, older_than_s: float = ORPHAN_AGE_S) -> tuple[OrphanLedger, ...]:
        """Delete them. Raises as ``find``."""
        found = await self.find(older_than_s)
        with worded(f"deleting ledgers that journal {self._owner.node.name} left behind"):
            await delete_orphans(self._client, found)
        return found


def in_journal_words(orphans: Sequence[OrphanLedger]) -> tuple[Orphan, ...]:
    """The same as the framework says it."""
    return tuple(Orphan(f"ledger {orphan.ledger}", _purpose(orphan), orphan.age_s, orphan.length) for orphan in orphans)


def _purpose(orphan: OrphanLedger) -> str:
    if (at := orphan.tags.get("snapshot")) is not None:
        return f"a snapshot at edit {at.decode(errors='replace')}"
    first = orphan.tags.get("first", b"?").decode(errors="replace")
    return f"a segment from edit {first}, epoch {orphan.tags.get('epoch', b'?').decode(errors='replace')}"
