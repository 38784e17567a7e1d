"""``bk stream create``, ``configure``, ``rename``, ``delete``, ``truncate``, ``purge``, ``roll``, ``seal``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from bookkeeper.admin.shared.options import json_option, metadata_option, print_json
from bookkeeper.amounts import counted
from segments.arguments import is_gateway_uri
from segments.commands.inspection import report_document
from segments.commands.shared import (
    PositionType,
    complete,
    dry_run_option,
    position_text,
    segment_row,
    settings_option,
    stream_argument,
    streams_at,
    with_stream,
    yes_option,
)
from segments.config import StreamConfig
from segments.retention.retention_pass import PassResult
from segments.retention.truncation import TruncateResult
from segments.seek import Seek
from segments.stream import Stream


@click.command()
@metadata_option
@settings_option
@click.option("--exist-ok", is_flag=True, help="It is no error if the stream exists; its settings stay then.")
@stream_argument
def create(metadata: str, settings: dict[str, Any], exist_ok: bool, name: str) -> None:
    """Make a stream.

    \b
    Examples:
      bk stream create orders
      bk stream create eu/orders --set compression=lz4 --set retention.max_age_s=604800
      bk stream create small --set ensemble=1 --set write_quorum=1 --set ack_quorum=1
    """

    async def work() -> str:
        config = StreamConfig().patched(settings)
        async with streams_at(metadata, makes=True) as namespace:
            return (await namespace.create(name, config=config, exist_ok=exist_ok)).id

    stream_id = complete(work(), changes=True)
    click.echo(f"{f'stream {name} is there' if exist_ok else f'made stream {name}'}, with id {stream_id}")


@click.command()
@metadata_option
@settings_option
@stream_argument
def configure(metadata: str, settings: dict[str, Any], name: str) -> None:
    """Change settings of a stream. Retention follows with its next pass, a writer with its next segment."""
    if not settings:
        raise click.UsageError("which settings? Give --set NAME=VALUE; bk stream show lists them")
    with_stream(metadata, name, lambda stream: stream.configure(settings), changes=True)
    click.echo(f"changed in {name}: {', '.join(settings)}")


@click.command()
@metadata_option
@click.argument("old", metavar="STREAM")
@click.argument("new", metavar="NEW")
def rename(metadata: str, old: str, new: str) -> None:
    """Give a stream another name. Its writer, readers and cursors go on."""

    async def work() -> None:
        async with streams_at(metadata) as namespace:
            await namespace.rename(old, new)

    complete(work(), changes=True)
    click.echo(f"{old} has the name {new} now")


@click.command()
@metadata_option
@yes_option
@dry_run_option
@click.option("--force", is_flag=True, help="Delete it even if a hold is on it.")
@stream_argument
def delete(metadata: str, yes: bool, dry_run: bool, force: bool, name: str) -> None:
    """Delete a stream with its records, cursors and holds, and fence its writer.

    If it stops half way, bk stream check --repair finishes it.
    """
    info = with_stream(metadata, name, lambda stream: stream.info())
    what = f"{name} with {counted(info.segments, 'segment')} and {counted(info.bytes, 'byte')}"
    if dry_run:
        writer = f"; {info.owner} writes to it" if info.owner else ""
        click.echo(f"would be deleted: {what}, id {info.stream_id}{writer}")
        return
    if not yes:
        who = f" {info.owner} writes to it and is fenced." if info.owner else ""
        click.confirm(f"This deletes {what} for ever.{who} Continue?", abort=True)

    async def work() -> None:
        async with streams_at(metadata) as namespace:
            await namespace.delete(name, force=force)

    complete(work(), changes=True)
    click.echo(f"deleted: {what}")


@click.command()
@metadata_option
@json_option
@yes_option
@dry_run_option
@click.option("--before", type=PositionType(), required=True, metavar="POSITION", help="The first record to keep.")
@click.option("--up-to-holds", is_flag=True, help="If a hold is in the way, stop there.")
@click.option("--keep-ledgers", is_flag=True, help="Only hide the records; bk stream purge frees the space.")
@stream_argument
def truncate(
    metadata: str,
    as_json: bool,
    yes: bool,
    dry_run: bool,
    before: Seek,
    up_to_holds: bool,
    keep_ledgers: bool,
    name: str,
) -> None:
    """Remove the records before a position: readers begin there at once, and ledgers that nothing needs are deleted."""

    async def remove(stream: Stream, dry_run: bool = dry_run) -> tuple[TruncateResult, tuple[int, ...]]:
        result = await stream.truncate(before, up_to_holds=up_to_holds, dry_run=dry_run)
        return result, () if dry_run or keep_ledgers else (await stream.apply_retention()).deleted

    if not dry_run and not yes:
        planned, _ = with_stream(metadata, name, partial(remove, dry_run=True))
        if planned.is_change:
            click.confirm(
                f"This removes the records of {name} before {planned.start} for ever, from {planned.was} on. Continue?",
                abort=True,
            )
    result, deleted = with_stream(metadata, name, remove, changes=not dry_run)
    if as_json:
        print_json(
            {
                "was": position_text(result.was),
                "start": position_text(result.start),
                "held_by": None if result.held_by is None else result.held_by.name,
                "removable": [segment.number for segment in result.removable],
                "deleted_ledgers": list(deleted),
            }
        )
        return
    if not result.is_change:
        click.echo(f"{name} begins at {result.start} already")
    else:
        verb = "would begin" if dry_run else "begins"
        click.echo(f"{name} {verb} at {result.start} instead of {result.was}")
    if result.held_by is not None:
        click.echo(f"{result.held_by.says()} keeps what follows")
    if result.removable and (dry_run or keep_ledgers):
        click.echo(f"{counted(len(result.removable), 'segment')} can be removed")
    if deleted:
        click.echo(f"{counted(len(deleted), 'ledger')} deleted")


@click.command()
@metadata_option
@json_option
@dry_run_option
@stream_argument
def purge(metadata: str, as_json: bool, dry_run: bool, name: str) -> None:
    """Apply a stream's retention now: remove the segments that may go. bk stream explain says which, and why."""

    async def remove(stream: Stream) -> PassResult:
        return PassResult(await stream.explain_retention(), ()) if dry_run else await stream.apply_retention()

    done = with_stream(metadata, name, remove, changes=not dry_run)
    if as_json:
        print_json({**report_document(done.report), "deleted_ledgers": list(done.deleted)})
        return
    verb = "would be removed" if dry_run else "removed"
    for each in done.report.segments:
        if each.goes:
            size = counted(each.segment.bytes, "byte")
            click.echo(f"{verb}: segment {each.segment.number}, {size}: {each.text}")
    for cursor in done.report.expired_cursors:
        click.echo(f"cursor {cursor} still needs records that {'go, or are gone' if dry_run else 'are gone'}")
    if not done.report.going and not done.deleted:
        click.echo("nothing to remove")


@click.command()
@metadata_option
@json_option
@yes_option
@stream_argument
def roll(metadata: str, as_json: bool, yes: bool, name: str) -> None:
    """End the open segment. This takes the stream over: a running writer is fenced."""
    _confirm_take_over(metadata, name, yes)
    ended = with_stream(metadata, name, lambda stream: stream.roll(), changes=True)
    if as_json:
        print_json(None if ended is None else segment_row(ended))
    elif ended is None:
        click.echo(f"{name} has no records")
    else:
        click.echo(f"segment {ended.number} is completed, with {counted(ended.records, 'record')}")


@click.command()
@metadata_option
@json_option
@yes_option
@stream_argument
def seal(metadata: str, as_json: bool, yes: bool, name: str) -> None:
    """End a stream for good: nothing can be appended any more. What it holds stays readable."""
    _confirm_take_over(metadata, name, yes, "This seals it for ever.")
    last = with_stream(metadata, name, lambda stream: stream.seal(), changes=True)
    if as_json:
        print_json({"stream": name, "last": position_text(last)})
    else:
        click.echo(f"{name} is sealed; " + ("it is empty" if last is None else f"its last record is at {last}"))


def _confirm_take_over(metadata: str, name: str, yes: bool, more: str = "") -> None:
    """The gateway that owns a stream does it without a take-over; nothing to ask then but for what is for ever."""
    taken = "" if is_gateway_uri(metadata) else f"This takes {name} over: a program that writes to it now is fenced."
    text = f"{taken} {more}".strip()
    if text and not yes:
        click.confirm(f"{text} Continue?", abort=True)
