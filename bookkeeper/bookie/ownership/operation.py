"""What a request wants to do with which ledger, and bits for sets of such operations. Pure."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cache
from typing import Final

from bookkeeper import wire
from bookkeeper.access import LedgerOperation, Right, allowed_by

BIT: Final = {operation: 1 << at for at, operation in enumerate(LedgerOperation)}
"""The bit of each operation: a connection looks up a number for a ledger, and one bit of it."""
ADD: Final = BIT[LedgerOperation.ADD]
RECOVERY_ADD: Final = BIT[LedgerOperation.RECOVERY_ADD]
READ: Final = BIT[LedgerOperation.READ]
REPAIRS: Final = 1 << len(BIT)
"""The bit of who repairs: what he adds is there already, elsewhere, and no quota counts it."""
EVERYTHING: Final = sum(BIT.values()) | REPAIRS

MAKES: Final = frozenset(
    {LedgerOperation.ADD, LedgerOperation.RECOVERY_ADD, LedgerOperation.FENCE, LedgerOperation.WRITE_LAC}
)
"""What lets a ledger begin to exist on a bookie. Such requests bring its key."""

BEGINS: Final = frozenset({LedgerOperation.ADD, LedgerOperation.WRITE_LAC})
"""With what a writer's new ledger begins; all else that makes one exist here is about one that has begun elsewhere."""

CLAIMS: Final = frozenset({LedgerOperation.ADD, LedgerOperation.FENCE})
"""With what a principal becomes the owner of a ledger that names none and that nobody has claimed: a recovery that
comes before the first add begins with a fence."""


@cache
def bits_of(rights: AbstractSet[Right]) -> int:
    """The operations that somebody with these rights may do, as bits, and :data:`REPAIRS`."""
    found = sum(BIT[operation] for operation in LedgerOperation if allowed_by(operation, rights))
    return found | REPAIRS if Right.REPAIR in rights else found


def operation_of(request: wire.Request) -> LedgerOperation | None:
    """What a request wants to do; None: nothing that is asked for. How much room there is on a bookie every client may
    know, because Apache's clients ask that to place ledgers by it."""
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
