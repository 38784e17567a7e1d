"""``bk stream export``, ``import``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from bookkeeper.admin.shared.options import json_option, metadata_option, print_json
from bookkeeper.admin.shared.part_file import PartFile
from bookkeeper.amounts import counted
from segments.commands.shared import (
    complete,
    dry_run_option,
    from_option,
    position_text,
    settings_option,
    stream_argument,
    streams_at,
    to_option,
    with_stream,
)
from segments.position import Position
from segments.seek import Seek
from segments.stream import Stream
from segments.transfer.transfer import ExportResult, ImportResult

READ_BYTES: Final = 1024 * 1024


@click.command()
@metadata_option
@json_option
@from_option
@to_option
@stream_argument
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export(metadata: str, as_json: bool, start: Seek, stop: Seek, name: str, file: Path) -> None:
    """Copy a stream to FILE, a checksummed file: bk stream import detects every change and every cut.

    What is durable now is copied, in whole segments; a hold keeps it until the end. FILE appears when it is complete;
    one of this name is replaced then. Only its owner may read it: records are in it as they were appended.
    """
    if str(file) == "-":
        raise click.UsageError(
            "a stream is copied to a file and not to standard output, because FILE appears when it is complete; a file "
            "that is to have this name needs its whole path"
        )
    part = file.with_name(f"{file.name}.part")

    async def write(stream: Stream) -> ExportResult:
        first = start if isinstance(start, Position) else await stream.find(start)
        copy = stream.export(first, stop if isinstance(stop, Position) else await stream.find(stop))
        with PartFile(part) as content:
            async for chunk in copy.chunks():
                content.write(chunk)
            content.sync()
        assert copy.result is not None
        return copy.result

    try:
        done = with_stream(metadata, name, write)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    totals = done.totals
    if as_json:
        print_json(
            {
                "start": position_text(done.start),
                "end": position_text(done.end),
                "segments": totals.segments,
                "entries": totals.entries,
                "bytes": totals.bytes,
            }
        )
        return
    size = f"{counted(totals.segments, 'segment')}, {counted(totals.entries, 'entry')}, {counted(totals.bytes, 'byte')}"
    click.echo(f"copied {name} from {done.start} to {done.end}: {size}")


@click.command("import")
@metadata_option
@json_option
@settings_option
@dry_run_option
@click.option("--name", metavar="STREAM", help="The new stream's name.  [default: the exported one's]")
@click.argument("file", type=click.File("rb"))
def import_command(
    metadata: str, as_json: bool, settings: dict[str, Any], dry_run: bool, name: str | None, file: BinaryIO
) -> None:
    """Make a stream of FILE, with every record at its position. With --dry-run FILE is only verified. A FILE of - is
    standard input.

    The stream appears when all of FILE was found to be right. --set changes settings, for instance the replication.
    """

    async def work() -> ImportResult:
        async with streams_at(metadata, makes=not dry_run) as namespace:
            return await namespace.import_stream(_chunks(file), name=name, changes=settings, dry_run=dry_run)

    made = complete(work(), changes=not dry_run)
    if as_json:
        print_json(
            {
                "stream": made.name,
                "id": None if dry_run else made.stream_id,
                "start": position_text(made.start),
                "segments": made.segments,
                "records": made.records,
                "entries": made.totals.entries,
                "bytes": made.totals.bytes,
            }
        )
        return
    verb = "FILE is whole; it would become" if dry_run else "made"
    what = f"{counted(made.segments, 'segment')}, {counted(made.records, 'record')}"
    click.echo(f"{verb} {made.name}: {what}; it begins at {made.start}")


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    while chunk := file.read(READ_BYTES):
        yield chunk
