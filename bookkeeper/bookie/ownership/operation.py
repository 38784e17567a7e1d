"""The operation of a request on a ledger, and sets of operations as bits. Pure."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cache
from typing import Final

from bookkeeper import wire
from bookkeeper.access import LedgerOperation, Right, allowed_by

BIT: Final = {operation: 1 << at for at, operation in enumerate(LedgerOperation)}
"""The bit of each operation in a set."""
ADD: Final = BIT[LedgerOperation.ADD]
RECOVERY_ADD: Final = BIT[LedgerOperation.RECOVERY_ADD]
READ: Final = BIT[LedgerOperation.READ]
REPAIR: Final = 1 << len(BIT)
"""The bit of the right to repair: what a repair adds are copies, which no quota counts."""
ALL: Final = sum(BIT.values()) | REPAIR

CREATING: Final = frozenset(
    {LedgerOperation.ADD, LedgerOperation.RECOVERY_ADD, LedgerOperation.FENCE, LedgerOperation.WRITE_LAC}
)
"""Operations that create a ledger on a bookie. Their requests have its key."""

BEGINNING: Final = frozenset({LedgerOperation.ADD, LedgerOperation.WRITE_LAC})
"""Operations with which a writer begins a new ledger; the others of ``CREATING`` concern ledgers that exist
elsewhere."""

CLAIMING: Final = frozenset({LedgerOperation.ADD, LedgerOperation.FENCE})
"""Operations with which a principal claims a ledger without an owner. A fence is one, because a recovery may come
before the first add."""


@cache
def bits_of(rights: AbstractSet[Right]) -> int:
    """The operations that these rights allow, as bits, and :data:`REPAIR`."""
    found = sum(BIT[operation] for operation in LedgerOperation if allowed_by(operation, rights))
    return found | REPAIR if Right.REPAIR in rights else found


def operation_of(request: wire.Request) -> LedgerOperation | None:
    """The operation of a request; None: it needs no right. Every client may read a bookie's free space, because
    Apache's clients place ledgers by it."""
    match request:
        case wire.AddEntry():
            return LedgerOperation.RECOVERY_ADD if request.recovery else LedgerOperation.ADD
        case wire.ReadEntry() | wire.BatchRead():
            return LedgerOperation.FENCE if request.fence else LedgerOperation.READ
        case wire.ReadLac():
            return LedgerOperation.READ
        case wire.WriteLac():
            return LedgerOperation.WRITE_LAC
        case wire.ForceLedger():
            return LedgerOperation.FORCE
        case wire.ListEntries():
            return LedgerOperation.LIST
        case _:
            return None


def key_of(request: wire.Request) -> bytes | None:
    """The ledger's key in a request that brings one."""
    match request:
        case wire.AddEntry() | wire.WriteLac() | wire.ReadEntry() | wire.BatchRead():
            return request.master_key
        case _:
            return None
