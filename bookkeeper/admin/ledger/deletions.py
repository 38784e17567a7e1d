"""``bk ledger delete``, ``undelete`` and ``list --deleted``: ledgers that go, and those that can be brought back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.shared.answers import VerbAnswer, verb_on_cluster
from bookkeeper.admin.shared.options import connected, ledger_argument
from bookkeeper.amounts import time_in_words
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import NO_ENTRY, LedgerId
from bookkeeper.option_types import WholeNumber
from bookkeeper.settings import default_of

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

GRACE_MAX_S: Final = 36_500 * 24 * 3600
"""A hundred years: what is meant to stay for longer is better not deleted."""


@click.command()
@verb_on_cluster(json=False, changes=True)
@ledger_argument
@click.confirmation_option("--yes", prompt="Delete the ledger?", help="Do not ask for confirmation.")
@click.option(
    "--force", is_flag=True, help="Delete it even if it is not closed and too few of its bookies answer to close it."
)
@click.option(
    "--grace",
    type=WholeNumber(0, GRACE_MAX_S),
    default=default_of(ClientConfig, "delete_grace_s"),
    show_default=True,
    metavar="SECONDS",
    help="For how long `bk ledger undelete` can bring it back. 0: never, also if it was deleted before.",
)
async def delete(bk: BookKeeper, ledger_id: int, force: bool, grace: int) -> str:
    """Delete a ledger, closing it first (which stops its writer).

    Its bookies reclaim the space when it cannot be brought back any more.
    """

    await bk.delete_ledger(ledger_id, force=force, grace_s=grace)
    back = f"; `bk ledger undelete {ledger_id}` brings it back within {time_in_words(grace)}" if grace else " for ever"
    return f"ledger {ledger_id} is deleted{back}"


@click.command()
@verb_on_cluster(changes=True)
@ledger_argument
async def undelete(bk: BookKeeper, ledger_id: int) -> VerbAnswer:
    """Bring a deleted ledger back, closed, as it was, and say which of its copies are not there any more.

    `bk ledger list --deleted` shows which ledgers can be brought back.
    """

    from bookkeeper.client.ledger_view import LedgerView
    from bookkeeper.client.operators import Operator
    from bookkeeper.replication.copying import RepairContext
    from bookkeeper.replication.inspection.check import incomplete_copies

    found = await Operator(bk).undelete_ledger(ledger_id)
    record = await LedgerView.read(bk.metadata_store.ledgers, LedgerId(ledger_id))
    problems = await incomplete_copies(RepairContext(services=bk.services), record)
    last = None if found.last_entry in (None, NO_ENTRY) else int(found.last_entry)
    lines = [
        f"ledger {ledger_id} is back; " + (f"its last entry is {last}" if last is not None else "it is empty"),
        *(f"  {problem}" for problem in problems),
        f"bk ledger repair {ledger_id} makes the missing copies again" if problems else "every copy is there",
    ]
    document = {"ledger": ledger_id, "last_entry": last, "incomplete_copies": [str(each) for each in problems]}
    return VerbAnswer(document, "\n".join(lines))


async def deleted_rows(metadata: str) -> list[dict[str, Any]]:
    """The deleted ledgers that can be brought back, as plain data."""
    from bookkeeper.client.operators import Operator

    rows: list[dict[str, Any]] = []
    async with connected(metadata) as bk:
        async for each in Operator(bk).deleted_ledgers():
            row: dict[str, Any] = {
                "ledger": int(each.ledger_id),
                "deleted_ms": each.deleted_ms,
                "until_ms": each.until_ms,
            }
            try:
                found = each.metadata
            except MetadataFormatError:
                row |= {"state": "not readable", "last_entry": None, "length": None}
            else:
                last = None if found.last_entry in (None, NO_ENTRY) else int(found.last_entry)
                row |= {"state": found.state.name, "last_entry": last, "length": found.length}
            rows.append(row)
    return rows
