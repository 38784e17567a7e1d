"""``bk bookies read-only``: ordering a bookie to take no new entries, from afar."""

from __future__ import annotations

import getpass
import platform
from typing import TYPE_CHECKING

import click

from bookkeeper.admin.shared import (
    metadata_option,
    on_cluster,
)

if TYPE_CHECKING:
    from bookkeeper import BookKeeper


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
