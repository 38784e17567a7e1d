"""Bugs where ledgers are deleted and brought back; a part of :data:`tests.simulation.bugs.bugs.BUGS`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Final

from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger, DeletedLedgers
from bookkeeper.testing.patches import Patch
from tests.simulation.bugs.bug import Bug, Plant, bug_into
from tests.simulation.plan import FIRST_WITH_UNDELETION

DELETION_BUGS: Final[dict[str, Bug]] = {}
"""By name, in the order of this file."""


def _bug(name: str, breaks: str, within: int) -> Callable[[Plant], Plant]:
    return bug_into(DELETION_BUGS, name, breaks, within, FIRST_WITH_UNDELETION)


@_bug("restorable-is-absent", "G8", 20)
def _restorable_is_absent(patch: Patch) -> None:
    """Bookies do not look whether a deleted ledger can be brought back, and drop it."""

    async def none(self: DeletedLedgers) -> AsyncIterator[LedgerId]:
        for ledger_id in tuple[LedgerId, ...]():
            yield ledger_id

    async def nowhere(self: DeletedLedgers, ledger_id: LedgerId, *, fresh: bool = False) -> bool:
        return False

    patch(DeletedLedgers, "all", none)
    patch(DeletedLedgers, "has", nowhere)


@_bug("grace-cut-short", "G8", 20)
def _grace_cut_short(patch: Patch) -> None:
    """Whoever looks through the records takes a deleted ledger's grace time for milliseconds."""
    read = DeletedLedgers.read

    async def short(self: DeletedLedgers, ledger_id: LedgerId) -> DeletedLedger:
        record = await read(self, ledger_id)
        return replace(record, grace_s=record.grace_s // 1000)

    patch(DeletedLedgers, "read", short)
