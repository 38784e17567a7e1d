"""``bk bookies safe-to-stop``: which bookies may be stopped."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from bookkeeper.admin.bookies.operations import counting
from bookkeeper.admin.shared import connected, counted, finish, json_option, metadata_option, print_json, print_table

if TYPE_CHECKING:
    from bookkeeper.replication.inspection import StopVerdict

_SHOWN: Final = 20
"""Ledgers that a table for people names at most."""


@click.command("safe-to-stop")
@metadata_option
@json_option
@click.argument("names", nargs=-1, required=True, metavar="ID...")
def safe_to_stop(metadata: str, as_json: bool, names: tuple[str, ...]) -> None:
    """Say whether bookies can be stopped together: yes (exit status 0) or no (1), with the ledgers that would suffer.

    Yes means that, with them away, every entry keeps a copy that was seen on another bookie, and every open ledger
    keeps enough bookies to go on.
    """

    async def work() -> StopVerdict:
        from bookkeeper.replication.inspection import safe_to_stop as ask

        async with connected(metadata) as bk:
            with counting(", ".join(names)) as show:
                return await ask(bk, names, show)

    found = finish(work())
    if as_json:
        print_json(
            {
                "bookies": list(found.bookies),
                "safe": found.is_safe,
                "ledgers": found.ledgers,
                "asked": found.asked,
                "obstacles": [{"ledger": each.ledger_id, "reason": each.reason} for each in found.obstacles],
            }
        )
    else:
        _tell_verdict(found)
    if not found.is_safe:
        sys.exit(1)


def _tell_verdict(found: StopVerdict) -> None:
    names = ", ".join(found.bookies)
    if found.is_safe:
        click.echo(f"yes: {names} can be stopped ({counted(found.ledgers, 'ledger')} looked at)")
        return
    click.echo(f"no: do not stop {names} now")
    rows = [{"ledger": each.ledger_id, "why": each.reason} for each in found.obstacles[:_SHOWN]]
    print_table(f"{counted(len(found.obstacles), 'ledger')} would suffer", ["ledger", "why"], rows)
    if len(found.obstacles) > _SHOWN:
        click.echo(f"and {len(found.obstacles) - _SHOWN} more (--json lists all)")
