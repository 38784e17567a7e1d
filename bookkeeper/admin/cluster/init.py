"""``bk init``: makes a cluster."""

from __future__ import annotations

import click

from bookkeeper.admin.shared.options import finish, json_option, metadata_option, print_json
from bookkeeper.errors import ClusterExistsError
from bookkeeper.meta import init_cluster
from bookkeeper.real import system_seams


@click.command()
@metadata_option
@json_option
def init(metadata: str, as_json: bool) -> None:
    """Create a new cluster in its metadata store. Refuses if there is one already.

    The command makes the same nodes as Apache BookKeeper's initnewcluster, so bookies and clients of either kind
    can join.
    """

    if metadata.startswith(("embedded:", "memory:")):
        raise click.UsageError(f"{metadata} needs no init: the first use makes the cluster")

    async def work() -> str:
        try:
            return await init_cluster(metadata, system_seams())
        except ClusterExistsError:
            raise ClusterExistsError(f"there is already a cluster at {metadata}, and it was not changed") from None

    instance = finish(work(), changes=True)
    if as_json:
        print_json({"instance_id": instance, "metadata": metadata})
    else:
        click.echo(f"made a new cluster at {metadata}, instance {instance}")
