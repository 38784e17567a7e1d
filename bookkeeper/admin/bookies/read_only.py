"""``bk bookies read-only``: ordering a bookie to take no new entries, from afar."""

from __future__ import annotations

import getpass
import platform

import click

from bookkeeper.admin.shared import connected, finish, metadata_option
from bookkeeper.errors import IllegalOperationError


@click.command("read-only")
@metadata_option
@click.argument("name", metavar="ID")
@click.option("--off", is_flag=True, help="Take the order back.")
def read_only(metadata: str, name: str, off: bool) -> None:
    """Order a bookie to take no new entries; it serves what it has. For instance before it is drained.

    The order stands in the cluster's metadata, and outlives restarts of the bookie. Its writers go on elsewhere with
    their next append. A bookie that is down follows it when it starts. Java's bookies do not know such orders.
    """

    async def work() -> bool:
        from bookkeeper.client.operators import Operator
        from bookkeeper.ids import BookieId
        from bookkeeper.meta.records.read_only import ReadOnlyOrders

        async with connected(metadata) as bk:
            known = await Operator(bk).all_bookies()
            if name not in known:
                raise IllegalOperationError(f"there is no bookie {name}; known are {', '.join(known) or 'none'}")
            orders = ReadOnlyOrders(bk.metadata_store.store, bk.metadata_store.paths)
            if off:
                await orders.take_back(BookieId(name))
            else:
                await orders.give(BookieId(name), f"{getpass.getuser()} on {platform.node()}")
            return name in await Operator(bk).writable_bookies()

    writable = finish(work(), changes=True)
    if off:
        click.echo(f"{name} may take new entries again; `bk bookies` shows it as writable when it does")
    else:
        done = "; `bk bookies` shows it as read-only within seconds" if writable else ""
        click.echo(f"{name} is ordered to take no new entries{done}")
