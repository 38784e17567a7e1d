"""``bk access hand-over``: gives ledgers another owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from bookkeeper.access.ownership import checked_owner
from bookkeeper.admin.access.policy_change import note_change
from bookkeeper.admin.shared import VerbAnswer, counted, verb_on_cluster
from bookkeeper.admin.shared.options import LedgerIdType
from bookkeeper.errors import NoSuchLedgerError
from bookkeeper.ids import LedgerId, some_of

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.meta import Metadata

_SHOWN: Final = 10
"""Ledgers that an error names at most."""


@click.command("hand-over")
@verb_on_cluster(changes=True)
@click.argument("owner")
@click.argument("ledgers", nargs=-1, required=True, type=LedgerIdType(0), metavar="LEDGER...")
async def hand_over(bk: BookKeeper, owner: str, ledgers: tuple[int, ...]) -> VerbAnswer:
    """Make OWNER the owner of ledgers, whoever owned them before: ledgers:NAME, streams:NAME, journals:NAME or
    paths:/PATH.

    For ledgers that name no owner and were there before anybody was asked, for those of a stream that was renamed, and
    for those of somebody who has left. Bookies learn of it within a minute, and keep it.
    """
    wanted = checked_owner(owner)
    metadata, numbers = bk.metadata_store, [LedgerId(ledger) for ledger in ledgers]
    if missing := await _missing(metadata, numbers):
        raise NoSuchLedgerError(f"nothing was changed: there is no ledger {some_of(missing, _SHOWN)}")
    before = await metadata.ledger_owners.handed_over()
    restorable = metadata.ledgers.restorable  # who brings one back finds the owner that it has now
    gone = [each for each in await _missing(metadata, list(before)) if not await restorable.has(each, fresh=True)]
    await metadata.ledger_owners.hand_over(numbers, wanted, gone)
    await note_change(metadata, f"hand-over {wanted} {some_of(numbers, _SHOWN)}")
    document = {"owner": str(wanted), "ledgers": numbers}
    return VerbAnswer(document, f"{counted(len(numbers), 'ledger')} handed over to {wanted}")


async def _missing(metadata: Metadata, ledgers: Sequence[LedgerId]) -> list[LedgerId]:
    """Those of these ledgers that do not exist."""
    missing = []
    for ledger in ledgers:
        try:
            await metadata.ledgers.read(ledger)
        except NoSuchLedgerError:
            missing.append(ledger)
    return missing
