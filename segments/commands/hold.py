"""``bk stream hold``: add, list, release."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.options import json_option, metadata_option
from bookkeeper.option_types import Number
from segments.commands.shared import (
    HOLD_COLUMNS,
    from_option,
    hold_row,
    place_option,
    print_rows,
    stream_argument,
    with_stream,
)
from segments.position import LATEST
from segments.record import to_ms
from segments.retention.holds import Hold
from segments.seek import Seek
from segments.stream import Stream


@click.group(cls=CommandGroup)
def hold() -> None:
    """Keep records: neither retention nor truncation removes what a hold covers."""


@hold.command()
@metadata_option
@from_option
@place_option("--to", "stop", LATEST, "The record behind the last one.  [default: no end]")
@click.option(
    "--for", "hours", type=Number(0, min_open=True), metavar="HOURS", help="How long.  [default: until it is released]"
)
@click.option("--note", default="", help="Who wants it, and why.")
@stream_argument
@click.argument("hold_name", metavar="HOLD")
def add(metadata: str, start: Seek, stop: Seek, hours: float | None, note: str, name: str, hold_name: str) -> None:
    """Put a hold on a stream, or give the one of this name another range."""

    try:
        until = None if hours is None else datetime.now(UTC) + timedelta(hours=hours)
    except (OverflowError, ValueError) as error:
        raise click.UsageError(
            f"--for {hours} ends behind the year 9999: leave it out for a hold without end"
        ) from error

    async def put(stream: Stream) -> Hold:
        return await stream.hold(hold_name, start, stop, until=until, note=note)

    found = with_stream(metadata, name, put, changes=True)
    end = "on" if found.stop == LATEST else f"up to {found.stop}"
    click.echo(f"{found.says()} covers {name} from {found.start} {end}")


@hold.command("list")
@metadata_option
@json_option
@stream_argument
def list_holds(metadata: str, as_json: bool, name: str) -> None:
    """List the holds of a stream."""
    now_ms = to_ms(datetime.now(UTC))
    rows = [hold_row(each, now_ms) for each in with_stream(metadata, name, lambda stream: stream.holds())]
    print_rows(as_json, f"holds of {name}", HOLD_COLUMNS, rows, f"{name} has no holds")


@hold.command()
@metadata_option
@stream_argument
@click.argument("hold_name", metavar="HOLD")
def release(metadata: str, name: str, hold_name: str) -> None:
    """Remove a hold. What only it kept goes with the next bk stream purge."""
    with_stream(metadata, name, lambda stream: stream.release_hold(hold_name), changes=True)
    click.echo(f"hold {hold_name} of {name} is released")
