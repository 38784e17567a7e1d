"""``bk stream hold``: add, list, release."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from bookkeeper.admin.shared import CommandGroup, json_option, metadata_option, print_json, print_table
from bookkeeper.option_types import Number
from segments.commands.shared import PositionType, complete, hold_row, stream_argument, streams_at
from segments.position import EARLIEST, LATEST
from segments.record import to_ms
from segments.retention.holds import Hold
from segments.seek import Seek


@click.group(cls=CommandGroup)
def hold() -> None:
    """Keep records: neither retention nor truncation removes what a hold covers."""


@hold.command()
@metadata_option
@click.option(
    "--from", "start", type=PositionType(), metavar="PLACE", help="The first record.  [default: the stream's first]"
)
@click.option(
    "--to", "stop", type=PositionType(), metavar="PLACE", help="The record behind the last one.  [default: no end]"
)
@click.option(
    "--for", "hours", type=Number(0, min_open=True), metavar="HOURS", help="How long.  [default: until it is released]"
)
@click.option("--note", default="", help="Who wants it, and why.")
@stream_argument
@click.argument("hold_name", metavar="HOLD")
def add(
    metadata: str, start: Seek | None, stop: Seek | None, hours: float | None, note: str, name: str, hold_name: str
) -> None:
    """Put a hold on a stream, or give the one of this name another range."""

    try:
        until = None if hours is None else datetime.now(UTC) + timedelta(hours=hours)
    except (OverflowError, ValueError) as error:
        raise click.UsageError(
            f"--for {hours} ends behind the year 9999: leave it out for a hold without end"
        ) from error

    async def work() -> Hold:
        async with streams_at(metadata) as namespace:
            stream = await namespace.open(name)
            first, end = EARLIEST if start is None else start, LATEST if stop is None else stop
            return await stream.hold(hold_name, first, end, until=until, note=note)

    found = complete(work(), changes=True)
    end = "on" if found.stop == LATEST else f"up to {found.stop}"
    click.echo(f"{found.says()} covers {name} from {found.start} {end}")


@hold.command("list")
@metadata_option
@json_option
@stream_argument
def list_holds(metadata: str, as_json: bool, name: str) -> None:
    """List the holds of a stream."""

    async def work() -> list[dict[str, object]]:
        async with streams_at(metadata) as namespace:
            now_ms = to_ms(datetime.now(UTC))
            return [hold_row(each, now_ms) for each in await (await namespace.open(name)).holds()]

    rows = complete(work())
    if as_json:
        print_json(rows)
    elif rows:
        print_table(f"holds of {name}", ("hold", "from", "to", "until", "active", "note"), rows)
    else:
        click.echo(f"{name} has no holds")


@hold.command()
@metadata_option
@stream_argument
@click.argument("hold_name", metavar="HOLD")
def release(metadata: str, name: str, hold_name: str) -> None:
    """Remove a hold. What only it kept goes with the next bk stream purge."""

    async def work() -> None:
        async with streams_at(metadata) as namespace:
            await (await namespace.open(name)).release_hold(hold_name)

    complete(work(), changes=True)
    click.echo(f"hold {hold_name} of {name} is released")
