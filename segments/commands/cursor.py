"""``bk stream cursor``: list, show, set, history, restore, delete."""

from __future__ import annotations

from typing import Final

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.options import json_option, metadata_option, print_json, print_table
from bookkeeper.amounts import counted
from bookkeeper.option_types import WholeNumber
from segments.commands.shared import (
    PositionType,
    dry_run_option,
    position_text,
    print_rows,
    stream_argument,
    with_stream,
    yes_option,
)
from segments.cursors.cursor_state import CursorState
from segments.errors import CursorNotFoundError
from segments.position import Position
from segments.read import Lag
from segments.record import from_ms
from segments.seek import Seek
from segments.stream import Stream

OWNER: Final = "bk stream cursor"


@click.group(cls=CommandGroup)
def cursor() -> None:
    """Look at the cursors of a stream, and move them."""


@cursor.command("list")
@metadata_option
@json_option
@stream_argument
def list_cursors(metadata: str, as_json: bool, name: str) -> None:
    """List the cursors of a stream, with what each has left to do."""

    async def rows_of(stream: Stream) -> list[dict[str, object]]:
        return [
            {
                "cursor": each,
                "needs": position_text(state.mark.position),
                "owner": state.owner or None,
                "records_left": (await stream.cursor(each).backlog()).records,
            }
            for each, state in (await stream.cursors()).items()
        ]

    rows = with_stream(metadata, name, rows_of)
    columns = ("cursor", "needs", "owner", "records_left")
    print_rows(as_json, f"cursors of {name}", columns, rows, f"{name} has no cursors")


@cursor.command()
@metadata_option
@json_option
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
def show(metadata: str, as_json: bool, name: str, cursor_name: str) -> None:
    """Show a cursor: its place, its owner, how far it is behind, its properties."""

    async def read_cursor(stream: Stream) -> tuple[CursorState, Lag]:
        found = stream.cursor(cursor_name)
        return await found.state(), await found.backlog(precise=True)

    state, backlog = with_stream(metadata, name, read_cursor)
    needs, version, done_beyond = position_text(state.mark.position), state.version.number, state.ranges.records
    if as_json:
        print_json(
            {
                "cursor": cursor_name,
                "needs": needs,
                "seq_no": state.mark.seq_no,
                "owner": state.owner or None,
                "epoch": state.epoch,
                "version": version,
                "done_beyond": done_beyond,
                "by": state.by or None,
                "records_left": backlog.records,
                "seconds_behind": backlog.seconds,
                "properties": dict(state.properties),
            }
        )
        return
    owner = f"in use by {state.owner}" if state.owner else "nobody uses it"
    click.echo(f"{cursor_name}: at {needs} (record {state.mark.seq_no}), version {version}; {owner}")
    if state.by:
        click.echo(f"it is {state.by}'s, who had a gateway make it")
    beyond = f", {counted(done_beyond, 'record')} beyond its place are done" if done_beyond else ""
    behind = "" if backlog.seconds is None else f"; the first is {backlog.seconds:.0f} s old"
    click.echo(f"{counted(backlog.records, 'record')} left{beyond}{behind}")
    for key, value in state.properties.items():
        click.echo(f"  {key} = {value}")


@cursor.command("set")
@metadata_option
@dry_run_option
@click.option(
    "--to", "place", type=PositionType(), required=True, metavar="POSITION", help="The next record to deliver."
)
@click.option("--force", is_flag=True, help="Even if the cursor is in use, or its node is damaged.")
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
def set_command(metadata: str, dry_run: bool, place: Seek, force: bool, name: str, cursor_name: str) -> None:
    """Let a cursor go on at another place, also an earlier one. If there is none, it is made."""

    async def move(stream: Stream) -> tuple[str, Position]:
        found = stream.cursor(cursor_name, start=place, owner=OWNER)
        if dry_run:
            return "would be", await stream.find(place)
        try:
            return "is", await found.reset(place, force=force)
        except CursorNotFoundError:
            async with found:
                return "is new and", await found.position()

    what, position = with_stream(metadata, name, move, changes=not dry_run)
    click.echo(f"cursor {cursor_name} of {name} {what} at {position}")


@cursor.command()
@metadata_option
@json_option
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
def history(metadata: str, as_json: bool, name: str, cursor_name: str) -> None:
    """List where a cursor has been, newest first."""
    versions = with_stream(metadata, name, lambda stream: stream.cursor(cursor_name).history(1000))
    rows = [
        {
            "version": each.number,
            "needs": position_text(each.mark.position),
            "change": each.change.name.lower(),
            "at": from_ms(each.changed_ms).isoformat(timespec="seconds"),
        }
        for each in versions
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(f"cursor {cursor_name} of {name}", ("version", "needs", "change", "at"), rows)


@cursor.command()
@metadata_option
@click.option("--force", is_flag=True, help="Even if the cursor is in use.")
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
@click.argument("version", type=WholeNumber(1))
def restore(metadata: str, force: bool, name: str, cursor_name: str, version: int) -> None:
    """Let a cursor be again what it was in an earlier VERSION; bk stream cursor history lists them."""

    async def put_back(stream: Stream) -> Position:
        return await stream.cursor(cursor_name, owner=OWNER).restore(version, force=force)

    click.echo(f"cursor {cursor_name} of {name} is at {with_stream(metadata, name, put_back, changes=True)}")


@cursor.command("delete")
@metadata_option
@yes_option
@dry_run_option
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
def delete_cursor(metadata: str, yes: bool, dry_run: bool, name: str, cursor_name: str) -> None:
    """Delete a cursor, with its history. What only it kept goes with the next bk stream purge."""
    at = with_stream(metadata, name, lambda stream: stream.cursor(cursor_name).position())
    if dry_run:
        click.echo(f"would be deleted: cursor {cursor_name} of {name}, at {at}")
        return
    if not yes:
        click.confirm(f"This deletes cursor {cursor_name} of {name}, which is at {at}. Continue?", abort=True)
    with_stream(metadata, name, lambda stream: stream.cursor(cursor_name).delete(missing_ok=False), changes=True)
    click.echo(f"deleted: cursor {cursor_name} of {name}, which was at {at}")
