"""``bk bookies safe-to-stop``: which bookies may be stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from bookkeeper.admin.bookies.operations import counting
from bookkeeper.admin.shared import (
    VerbAnswer,
    counted,
    json_option,
    metadata_option,
    on_cluster,
    print_table,
)

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.replication.inspection import StopVerdict

_SHOWN: Final = 20
"""Ledgers that a table for people names at most."""


@click.command("safe-to-stop")
@metadata_option
@json_option
@click.argument("names", nargs=-1, required=True, metavar="ID...")
@on_cluster()
async def safe_to_stop(bk: BookKeeper, names: tuple[str, ...]) -> VerbAnswer:
    """Say whether bookies can be stopped together: yes (exit status 0) or no (1), with the ledgers that would suffer.

    Yes means that, with them away, every entry keeps a copy that was seen on another bookie, and every open ledger
    keeps enough bookies to go on.
    """

    from bookkeeper.replication.inspection import safe_to_stop as ask

    with counting(", ".join(names)) as show:
        found = await ask(bk, names, show)
    document = {
        "bookies": list(found.bookies),
        "safe": found.is_safe,
        "ledgers": found.ledgers,
        "asked": found.asked,
        "obstacles": [{"ledger": each.ledger_id, "reason": each.reason} for each in found.obstacles],
    }
    return VerbAnswer(document, lambda: _print_verdict(found), is_good=found.is_safe)


def _print_verdict(found: StopVerdict) -> None:
    names = ", ".join(found.bookies)
    if found.is_safe:
        click.echo(f"yes: {names} can be stopped ({counted(found.ledgers, 'ledger')} looked at)")
        return
    click.echo(f"no: do not stop {names} now")
    rows = [{"ledger": each.ledger_id, "why": each.reason} for each in found.obstacles]
    print_table(f"{counted(len(rows), 'ledger')} would suffer", ["ledger", "why"], rows, most=_SHOWN)
