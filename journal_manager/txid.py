"""Transaction ids: they rise by 1 with each edit, and are never used twice in one journal (C7)."""

from __future__ import annotations

from typing import Final, TypeAlias

TxId: TypeAlias = int
"""A plain integer: 1 <= txid < 2**63. A snapshot *at* txid N holds the effect of every edit up to and including N."""

NOTHING: Final = TxId(0)
"""The id before the first edit: the empty namespace is the state at 0."""

FIRST_TXID: Final = TxId(1)
MAX_TXID: Final = TxId(2**63 - 1)


def is_txid(value: int) -> bool:
    """Whether an edit may have this transaction id."""
    return FIRST_TXID <= value <= MAX_TXID
