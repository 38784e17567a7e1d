"""``bk stream cursor``: list, show, set, history, restore, delete."""

from __future__ import annotations

from typing import Any, Final

import click

from bookkeeper.admin.shared import CommandGroup, counted, json_option, metadata_option, print_json, print_table
from bookkeeper.option_types import WholeNumber
from segments.commands.shared import (
    PositionType,
    complete,
    dry_run_option,
    stream_argument,
    streams_at,
    told,
    yes_option,
)
from segments.errors import CursorNotFoundError
from segments.record import from_ms
from segments.seek import Seek

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

    async def work() -> list[dict[str, object]]:
        async with streams_at(metadata) as namespace:
            stream = await namespace.open(name)
            rows: list[dict[str, object]] = []
            for each, state in (await stream.cursors()).items():
                backlog = await stream.cursor(each).backlog()
                rows.append(
                    {
                        "cursor": each,
                        "needs": told(state.mark.position),
                        "owner": state.owner or None,
                        "records_left": backlog.records,
                    }
                )
            return rows

    rows = complete(work())
    if as_json:
        print_json(rows)
    elif rows:
        print_table(f"cursors of {name}", ("cursor", "needs", "owner", "records_left"), rows)
    else:
        click.echo(f"{name} has no cursors")


@cursor.command()
@metadata_option
@json_option
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
def show(metadata: str, as_json: bool, name: str, cursor_name: str) -> None:
    """Show a cursor: its place, its owner, how far it is behind, its properties."""

    async def work() -> dict[str, Any]:
        async with streams_at(metadata) as namespace:
            found = (await namespace.open(name)).cursor(cursor_name)
            state = await found.state()
            backlog = await found.backlog(precise=True)
            return {
                "cursor": cursor_name,
                "needs": told(state.mark.position),
                "seq_no": state.mark.seq_no,
                "owner": state.owner or None,
                "epoch": state.epoch,
                "version": state.version.number,
                "done_beyond": state.ranges.records,
                "records_left": backlog.records,
                "seconds_behind": backlog.seconds,
                "properties": dict(state.properties),
            }

    found = complete(work())
    if as_json:
        print_json(found)
        return
    owner = f"in use by {found['owner']}" if found["owner"] else "nobody uses it"
    click.echo(f"{cursor_name}: at {found['needs']} (record {found['seq_no']}), version {found['version']}; {owner}")
    beyond = f", {counted(found['done_beyond'], 'record')} beyond its place are done" if found["done_beyond"] else ""
    behind = "" if found["seconds_behind"] is None else f"; the first is {found['seconds_behind']:.0f} s old"
    click.echo(f"{counted(found['records_left'], 'record')} left{beyond}{behind}")
    for key, value in found["properties"].items():
        click.echo(f"  {key} = {value}")


@cursor.command("set")
@metadata_option
@dry_run_option
@click.option("--to", "place", type=PositionType(), required=True, metavar="PLACE", help="The record that comes next.")
@click.option("--force", is_flag=True, help="Also if somebody uses the cursor, or its record is damaged.")
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
def set_command(metadata: str, dry_run: bool, place: Seek, force: bool, name: str, cursor_name: str) -> None:
    """Let a cursor go on at another place, also an earlier one. If there is none, it is made."""

    async def work() -> tuple[str, str]:
        async with streams_at(metadata) as namespace:
            stream = await namespace.open(name)
            found = stream.cursor(cursor_name, start=place, owner=OWNER)
            if dry_run:
                return "would be", str(await stream.find(place))
            try:
                return "is", str(await found.reset(place, force=force))
            except CursorNotFoundError:
                async with found:
                    return "is new and", str(await found.position())

    what, position = complete(work(), changes=not dry_run)
    click.echo(f"cursor {cursor_name} of {name} {what} at {position}")


@cursor.command()
@metadata_option
@json_option
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
def history(metadata: str, as_json: bool, name: str, cursor_name: str) -> None:
    """List where a cursor has been, newest first."""

    async def work() -> list[dict[str, object]]:
        async with streams_at(metadata) as namespace:
            stream = await namespace.open(name)
            return [
                {
                    "version": each.number,
                    "needs": told(each.mark.position),
                    "change": each.change.name.lower(),
                    "at": from_ms(each.changed_ms).isoformat(timespec="seconds"),
                }
                for each in await stream.cursor(cursor_name).history(1000)
            ]

    rows = complete(work())
    if as_json:
        print_json(rows)
    else:
        print_table(f"cursor {cursor_name} of {name}", ("version", "needs", "change", "at"), rows)


@cursor.command()
@metadata_option
@click.option("--force", is_flag=True, help="Also if somebody uses the cursor.")
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
@click.argument("version", type=WholeNumber(1))
def restore(metadata: str, force: bool, name: str, cursor_name: str, version: int) -> None:
    """Let a cursor be again what it was in an earlier VERSION; bk stream cursor history lists them."""

    async def work() -> str:
        async with streams_at(metadata) as namespace:
            found = (await namespace.open(name)).cursor(cursor_name, owner=OWNER)
            return str(await found.restore(version, force=force))

    click.echo(f"cursor {cursor_name} of {name} is at {complete(work(), changes=True)}")


@cursor.command("delete")
@metadata_option
@yes_option
@dry_run_option
@stream_argument
@click.argument("cursor_name", metavar="CURSOR")
def delete_cursor(metadata: str, yes: bool, dry_run: bool, name: str, cursor_name: str) -> None:
    """Delete a cursor, with its history. What only it kept goes with the next bk stream purge."""

    async def look() -> str:
        async with streams_at(metadata) as namespace:
            return str(await (await namespace.open(name)).cursor(cursor_name).position())

    at = complete(look())
    if dry_run:
        click.echo(f"would be deleted: cursor {cursor_name} of {name}, at {at}")
        return
    if not yes:
        click.confirm(f"This deletes cursor {cursor_name} of {name}, which is at {at}. Continue?", abort=True)

    async def work() -> None:
        async with streams_at(metadata) as namespace:
            await (await namespace.open(name)).cursor(cursor_name).delete(missing_ok=False)

    complete(work(), changes=True)
    click.echo(f"deleted: cursor {cursor_name} of {name}, which was at {at}")
