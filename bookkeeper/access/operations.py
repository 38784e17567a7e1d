"""What a bookie is asked for, and the rights of which one is needed for it (X12, X13, X14, X22)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Final

from bookkeeper.access.rights import Right


class LedgerOperation(Enum):
    """What a request to a bookie does with a ledger."""

    ADD = "add"
    RECOVERY_ADD = "recovery add"
    FENCE = "fence"
    """Also every read with the fencing flag."""
    READ = "read"
    """Also batches, long polls, and the last add confirmed."""
    LIST = "list"
    """Which entries of a ledger there are; which ledgers there are is asked of the cluster."""
    FORCE = "force"
    WRITE_LAC = "explicit last add confirmed"
    PRIORITY = "priority"
    """The reserve that fences and recoveries have."""


_NEEDED: Final = {
    LedgerOperation.ADD: frozenset({Right.APPEND}),
    LedgerOperation.RECOVERY_ADD: frozenset({Right.RECOVER, Right.REPAIR}),
    LedgerOperation.FENCE: frozenset({Right.RECOVER, Right.REPAIR}),
    LedgerOperation.READ: frozenset({Right.READ, Right.RECOVER, Right.REPAIR}),
    LedgerOperation.LIST: frozenset({Right.READ, Right.RECOVER, Right.REPAIR}),
    LedgerOperation.FORCE: frozenset({Right.APPEND, Right.RECOVER}),
    LedgerOperation.WRITE_LAC: frozenset({Right.APPEND}),
    LedgerOperation.PRIORITY: frozenset({Right.RECOVER, Right.REPAIR}),
}


def allowed_by(operation: LedgerOperation, rights: AbstractSet[Right]) -> bool:
    """Whether somebody with ``rights`` on a ledger may do this with it: one of the rights that it needs is enough."""
    return not _NEEDED[operation].isdisjoint(rights)
