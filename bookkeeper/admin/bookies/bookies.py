"""``bk bookies``: lists the bookies of a cluster. Which module has which other verb is said by
:mod:`bookkeeper.admin.bookies`.
"""

from __future__ import annotations

import getpass
import platform
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.bookies.decommission import decommission
from bookkeeper.admin.bookies.operations import counting, drain, forget, info
from bookkeeper.admin.shared import (
    DefaultCommandGroup,
    VerbAnswer,
    counted,
    json_option,
    metadata_option,
    on_cluster,
    print_table,
)
from bookkeeper.meta import Metadata

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


@click.command("read-only")
@metadata_option
@click.argument("name", metavar="ID")
@click.option("--off", is_flag=True, help="Take the order back.")
@on_cluster(changes=True)
async def read_only(bk: BookKeeper, name: str, off: bool) -> str:
    """Order a bookie to take no new entries; it serves what it has. For instance before it is drained.

    The order stands in the cluster's metadata, and outlives restarts of the bookie. Its writers go on elsewhere with
    their next append. A bookie that is down follows it when it starts. Java's bookies do not know such orders.
    """

    from bookkeeper.client.operators import Operator, require_bookies
    from bookkeeper.ids import BookieId
    from bookkeeper.meta.records.read_only import ReadOnlyOrders

    require_bookies([name], await Operator(bk).all_bookies())
    orders = ReadOnlyOrders(bk.metadata_store.store, bk.metadata_store.paths)
    if off:
        await orders.take_back(BookieId(name))
        return f"{name} may take new entries again; `bk bookies` shows it as writable when it does"
    await orders.give(BookieId(name), f"{getpass.getuser()} on {platform.node()}")
    writable = name in await Operator(bk).writable_bookies()
    done = "; `bk bookies` shows it as read-only within seconds" if writable else ""
    return f"{name} is ordered to take no new entries{done}"


@click.group(cls=DefaultCommandGroup, default="list")
def bookies() -> None:
    """List bookies (the default), ask how full they are and which may stop, move ledgers off them, forget them."""


bookies.add_command(info)
bookies.add_command(drain)
bookies.add_command(forget)
bookies.add_command(decommission)
bookies.add_command(read_only)
bookies.add_command(safe_to_stop)


@bookies.command("list")
@metadata_option
@json_option
@on_cluster()
async def list_(bk: BookKeeper) -> VerbAnswer:
    """List the bookies: writable, read-only, and absent (known by their cookie, not registered now)."""
    rows = await present(bk.metadata_store)
    return VerbAnswer(rows, lambda: print_table(counted(len(rows), "bookie"), ["bookie", "state", "address"], rows))


async def present(metadata: Metadata) -> list[dict[str, Any]]:
    """List every bookie as plain data: its id, state (writable, read-only, absent) and address."""
    writable = await metadata.bookies.writable()
    read_only = await metadata.bookies.read_only()
    absent = sorted(set(await metadata.bookies.known()) - set(writable) - set(read_only))
    rows: list[dict[str, Any]] = []
    for state, names in (("writable", writable), ("read-only", read_only)):
        for name in names:
            rows.append({"bookie": name, "state": state, "address": str(await metadata.bookies.address(name))})
    rows += [{"bookie": name, "state": "absent", "address": None} for name in absent]
    return sorted(rows, key=lambda row: str(row["bookie"]))
