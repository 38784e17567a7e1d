"""Copies of deleted ledgers that can still be brought back. No survey of living ledgers shows them, and no drain moves
them: with the bookie they are gone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId, LedgerId, some_of

SHOWN: Final = 10
"""Ledgers that a sentence names at most."""


@dataclass(frozen=True, slots=True)
class DeletedCopies:
    """A deleted ledger of which some bookies have copies."""

    ledger_id: LedgerId
    bookies: tuple[BookieId, ...]
    until_ms: int = 0
    """Until when it can be brought back at least, by the store's clock, in milliseconds since 1970; 0: its record is
    damaged, so it may be anybody's, and nobody knows."""

    def __str__(self) -> str:
        return f"ledger {self.ledger_id}: {self.reason}"

    @property
    def reason(self) -> str:
        """Why it is in the way: a sentence for people."""
        if not self.until_ms:
            return f"it is deleted, and its record is damaged: {' or '.join(self.bookies)} may have copies of it"
        until = _moment(self.until_ms)
        return f"it is deleted, can be brought back until {until}, and has copies on {', '.join(self.bookies)}"


async def deleted_copies(client: BookKeeper, bookies: Collection[BookieId]) -> list[DeletedCopies]:
    """The deleted ledgers that can be brought back and name one of these bookies, ascending, read after a sync.

    Raises: MetadataError.
    """
    found: list[DeletedCopies] = []
    async for record in Operator(client).deleted_ledgers():
        try:
            named = tuple(sorted(record.metadata.bookies & set(bookies)))
        except MetadataFormatError:
            found.append(DeletedCopies(record.ledger_id, tuple(bookies)))
            continue
        if named:
            found.append(DeletedCopies(record.ledger_id, named, record.until_ms))
    return found


def in_words(copies: Sequence[DeletedCopies]) -> str:
    """What is lost with the bookies, and what can be done about it: for an error, or for people who look."""
    bookies = ", ".join(sorted({bookie for each in copies for bookie in each.bookies}))
    shown = some_of([each.ledger_id for each in copies], SHOWN)
    last = max(copies, key=lambda each: each.until_ms)
    until = _moment(last.until_ms) if last.until_ms else ""
    wait = f"wait until {until}, when that is over for all of them; or " if until else ""
    return (
        f"{bookies} has copies of ledgers that are deleted and can still be brought back: {shown}. {wait}bring "
        "them back (`bk ledger undelete`) and drain it once more; or give these copies up with --give-up-deleted"
    )


def _moment(ms: int) -> str:
    """A time by the store's clock, for people."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
