"""``bk checkpoint rollback``: a query goes back to an earlier batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from bookkeeper.admin.shared.answers import VerbAnswer
from bookkeeper.admin.shared.options import json_option
from bookkeeper.amounts import counted
from bookkeeper.errors import in_words
from bookkeeper.option_types import Number, WholeNumber

if TYPE_CHECKING:
    from spark_wal.checkpoints.checkpoint import Checkpoint
    from spark_wal.checkpoints.rollback import RollbackPlan
    from spark_wal.spark_access import GatewayAccess
from spark_wal.checkpoint_options import access_options, in_ranges, opened_store, required

QUIET_S: Final = 60.0
"""Seconds without a write after which a rollback takes a query for stopped."""


@click.command()
@click.argument("location")
@click.argument("batch", type=WholeNumber(min=0))
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="LOCATION",
    help="The directory of a file sink of the query: its later batches are listed. May be repeated.",
)
@click.option(
    "--metadata",
    "-m",
    metavar="URI",
    help="A cluster, or a gateway of streams: its streams that have later batches of the query are listed.",
)
@click.option(
    "--quiet-s",
    type=Number(min=0),
    default=QUIET_S,
    show_default=True,
    metavar="SECONDS",
    help="Refuse if something was written within this time.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@access_options
def rollback(
    location: str,
    batch: int,
    sinks: tuple[str, ...],
    metadata: str | None,
    quiet_s: float,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    access: GatewayAccess,
) -> None:
    """Go back to BATCH: it becomes the last one that is done, and the query goes on behind it.

    LOCATION is at a gateway, where all files behind the batch go by one edit: after a crash it was done or it was not.
    It is refused while somebody writes there. A query that rests between two batches cannot be seen: stop it first.
    Rows behind the batch are read again from the sources, which must still have them, and may be cut into batches
    otherwise. What went does not come back: to keep it, `bk checkpoint copy` the checkpoint before.

    A checkpoint does not name its sinks. A sink that has later batches takes them for repetitions and ignores them,
    as format("bookkeeper") and file sinks do, or has their rows twice.
    """
    from spark_wal.checkpoint_copy.gateway_store import GatewayStore
    from spark_wal.checkpoints.fsck import StateChecks
    from spark_wal.checkpoints.reader import check_state, load
    from spark_wal.checkpoints.rollback import RollbackRefusedError, plan_rollback

    with opened_store(location, access) as store:
        if not isinstance(store, GatewayStore):
            raise click.ClickException(
                f"{store.uri} is not at a gateway, and only there all files go in one step: `bk checkpoint copy` it to "
                "a gateway, go back there, and start the query there (or copy it to a new directory)"
            )
        found = required(load(store))
        try:
            plan = plan_rollback(found, StateChecks.of(found, check_state(store, found)), batch)
        except RollbackRefusedError as error:
            raise click.ClickException(str(error)) from error
        later = [*_file_sinks(sinks, batch, access), *_streams_with(metadata, found.query_id or "", batch)]
        document = {
            "location": found.uri,
            "query": found.query_id,
            "batch": batch,
            "removed": list(plan.removed),
            "repeated": list(plan.repeated),
            "goes_on_with": list(plan.needed),
            "sinks_with_later_batches": later,
            "done": not dry_run,
        }
        if not as_json:
            _print_plan(found, plan, later, bool(sinks or metadata))
        if not dry_run:
            if not yes:
                click.confirm("go back?", abort=True, err=as_json)
            store.remove_numbered(plan.limits, found.listing, quiet_s)
    again = f"{found.uri}: batch {batch} is the last one that is done; the query goes on with batch {batch + 1}"
    VerbAnswer(document, "nothing was done" if dry_run else again).show(as_json)


def _print_plan(found: Checkpoint, plan: RollbackPlan, later: list[dict[str, object]], asked: bool) -> None:
    click.echo(f"{found.uri}, query {found.query_id}: back to batch {plan.batch}")
    repeated = (
        f"{in_ranges(plan.repeated)} will be computed again" if plan.repeated else "no batch that was done is lost"
    )
    click.echo(f"{counted(len(plan.removed), 'file')} behind it will go; {repeated}")
    for sink in later:
        click.echo(f"{sink['sink']} has batch {sink['last']} of this query: what comes again up to there is ignored")
    if not later and plan.repeated:
        none = "none of the sinks that were asked has later batches"
        click.echo(f"{none if asked else 'no sink was asked (--sink, --metadata)'}; check the others yourself")


def _file_sinks(sinks: tuple[str, ...], batch: int, access: GatewayAccess) -> list[dict[str, object]]:
    """The file sinks whose log has later batches."""
    from spark_wal.checkpoints.sinks import last_batch_of_file_sink

    found: list[dict[str, object]] = []
    for sink in sinks:
        with opened_store(sink, access) as store:
            last = last_batch_of_file_sink(store.listing())
            if last is None:
                raise click.ClickException(f"{store.uri} is no output of a file sink: it has no _spark_metadata")
            if last > batch:
                found.append({"sink": store.uri, "last": last})
    return found


def _streams_with(metadata: str | None, query: str, batch: int) -> list[dict[str, object]]:
    """The streams that remember later batches of the query."""
    if metadata is None:
        return []
    from segments import StreamError, sync
    from spark_wal.checkpoints.sinks import later_batches

    try:
        with sync.connect(metadata) as namespace:
            return [
                {"sink": f"stream {name} (application {app})", "last": last}
                for name in namespace.list()
                for app, last in later_batches(namespace.open(name).apps(), query, batch)
            ]
    except StreamError as error:
        raise click.ClickException(in_words(error)) from error
