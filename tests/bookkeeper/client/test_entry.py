"""What a reader gets."""

from __future__ import annotations

from bookkeeper.client.entry import LedgerEntry
from bookkeeper.ids import EntryId


def test_an_entry_is_its_id_and_its_payload() -> None:
    entry_id, payload = LedgerEntry(EntryId(3), b"x")
    assert (entry_id, payload) == (3, b"x")
