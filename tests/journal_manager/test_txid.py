"""Transaction ids."""

from __future__ import annotations

from journal_manager.edits import FIRST_TXID, NOTHING, is_txid
from journal_manager.txid import MAX_TXID


def test_ids_begin_at_one_and_nothing_is_none_of_them() -> None:
    assert not is_txid(NOTHING) and is_txid(FIRST_TXID) and is_txid(MAX_TXID)
    assert not is_txid(-12345) and not is_txid(MAX_TXID + 1)
