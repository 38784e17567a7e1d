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
from bookkeeper.admin.command_group import DefaultCommandGroup
from bookkeeper.admin.shared.answers import VerbAnswer, verb_on_cluster
from bookkeeper.admin.shared.options import print_table
from bookkeeper.amounts import counted
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import BookieId
from bookkeeper.meta import Metadata

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.replication.inspection.safe_to_stop import StopVerdict


_SHOWN: Final = 20
"""Ledgers that a table for people names at most."""


@click.command("safe-to-stop")
@verb_on_cluster()
@click.argument("names", nargs=-1, required=True, metavar="ID...")
async def safe_to_stop(bk: BookKeeper, names: tuple[str, ...]) -> VerbAnswer:
    """Say whether bookies can be stopped together: yes (exit status 0) or no (1), with the ledgers that would suffer.

    Yes means that, with them away, every entry keeps a copy that was seen on another bookie, and every open ledger
    keeps enough bookies to go on.
    """

    from bookkeeper.replication.inspection.safe_to_stop import safe_to_stop as verdict_of

    with counting(", ".join(names)) as show:
        found = await verdict_of(bk, names, show)
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
        click.echo(f"yes: {names} can be stopped ({counted(found.ledgers, 'ledger')} checked)")
        return
    click.echo(f"no: do not stop {names} now")
    rows = [{"ledger": each.ledger_id, "why": each.reason} for each in found.obstacles]
    print_table(f"{counted(len(rows), 'ledger')} would suffer", ["ledger", "why"], rows, most=_SHOWN)


@click.command("read-only")
@verb_on_cluster(json=False, changes=True)
@click.argument("name", metavar="ID")
@click.option("--off", is_flag=True, help="Take the order back.")
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


@click.command("place")
@verb_on_cluster(json=False, changes=True)
@click.argument("name", metavar="ID")
@click.argument("location", required=False, metavar="[/RACK | /REGION/RACK]")
@click.option("--forget", "forgotten", is_flag=True, help="Remove its location: it then counts as in the default rack.")
async def place(bk: BookKeeper, name: str, location: str | None, forgotten: bool) -> str:
    """Say in which rack a bookie stands. Clients spread the copies of an entry over racks.

    The place is kept in the metadata, also when the bookie is gone, and clients that run follow it. A bookie whose own
    settings have a `location` writes that at its next start. Ledgers that are there stay where they are: `bk ledger
    explain` shows what a rack's loss would take. Apache's clients do not read it.
    """

    from bookkeeper.client.operators import Operator, require_bookies
    from bookkeeper.ids import BookieId
    from bookkeeper.ledger.location import DEFAULT_RACK, Location

    if (location is None) is not forgotten:
        raise click.UsageError("give a location such as /rack1, or --forget")
    require_bookies([name], await Operator(bk).all_bookies())
    changed = await bk.metadata_store.locations.put(
        BookieId(name), None if location is None else Location.parse(location)
    )
    stands = (
        f"in {Location.parse(location)}"
        if location is not None
        else f"where nobody knows, and counts as in {DEFAULT_RACK}"
    )
    return f"{name} stands {stands}" + ("" if changed else ", as before")


@click.group(cls=DefaultCommandGroup, default="list")
def bookies() -> None:
    """List bookies (the default), say where they stand, ask how full they are and which may stop, move ledgers off
    them, forget them."""


bookies.add_command(info)
bookies.add_command(drain)
bookies.add_command(forget)
bookies.add_command(decommission)
bookies.add_command(read_only)
bookies.add_command(place)
bookies.add_command(safe_to_stop)


@bookies.command("list")
@verb_on_cluster()
async def list_(bk: BookKeeper) -> VerbAnswer:
    """List the bookies: writable, read-only, and absent (known by their cookie, not registered now), with the rack in
    which clients take them to stand."""
    rows = await present(bk.metadata_store)
    columns = ["bookie", "state", "address", "location"]
    if any("problem" in row for row in rows):
        columns.append("problem")
    return VerbAnswer(rows, lambda: print_table(counted(len(rows), "bookie"), columns, rows))


async def _address(metadata: Metadata, bookie: BookieId) -> dict[str, str | None]:
    """The bookie's address, or why its registration has none: that keeps nobody from seeing the others."""
    try:
        return {"address": str(await metadata.bookies.address(bookie))}
    except MetadataFormatError as error:
        return {"address": None, "problem": str(error)}


async def present(metadata: Metadata) -> list[dict[str, Any]]:
    """List every bookie as plain data: its id, state (writable, read-only, absent), address and location; and its
    problem, if its registration cannot be used."""
    from bookkeeper.ledger.location import DEFAULT_LOCATION

    writable = await metadata.bookies.writable()
    read_only = await metadata.bookies.read_only()
    absent = sorted(set(await metadata.bookies.known()) - set(writable) - set(read_only))
    rows: list[dict[str, Any]] = []
    for state, names in (("writable", writable), ("read-only", read_only)):
        for name in names:
            rows.append({"bookie": name, "state": state, **await _address(metadata, name)})
    rows += [{"bookie": name, "state": "absent", "address": None} for name in absent]
    places = await metadata.locations.read()
    for row in rows:
        row["location"] = str(places.get(row["bookie"], DEFAULT_LOCATION))
    return sorted(rows, key=lambda row: str(row["bookie"]))
