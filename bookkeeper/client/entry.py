"""What a reader gets: an entry of a ledger, verified."""

from __future__ import annotations

from typing import NamedTuple

from bookkeeper.ids import EntryId


class LedgerEntry(NamedTuple):
    """One entry whose digest and ids were checked (L5). Made once per entry read, hence a plain tuple."""

    entry_id: EntryId
    payload: bytes
