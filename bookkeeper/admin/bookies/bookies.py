"""``bk bookies``: lists the bookies of a cluster. Which module has which other verb is said by
:mod:`bookkeeper.admin.bookies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bookkeeper.admin.bookies.decommission import decommission
from bookkeeper.admin.bookies.operations import drain, forget, info
from bookkeeper.admin.bookies.read_only import read_only
from bookkeeper.admin.bookies.safe_to_stop import safe_to_stop
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
