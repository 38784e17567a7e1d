"""``bk journal snapshot``: list, export, import, delete."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import BinaryIO

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.options import json_option, print_json, print_table
from bookkeeper.admin.shared.part_file import PartFile
from journal_manager.commands.shared import TxIdType, as_owner, complete, journal_argument, take_over_option
from journal_manager.errors import SnapshotNotFoundError, UpgradeError
from journal_manager.journals.backend import JournalWriter
from journal_manager.journals.open_journal import open_snapshots
from journal_manager.snapshots.snapshots import PIECE_BYTES, SnapshotInfo, no_snapshot, restore_newest


@click.group(cls=CommandGroup)
def snapshot() -> None:
    """Look at a journal's snapshots, and move them."""


@snapshot.command("list")
@json_option
@journal_argument
def list_snapshots(as_json: bool, uri: str) -> None:
    """List the snapshots, oldest first."""

    async def work() -> list[dict[str, object]]:
        async with await open_snapshots(uri) as store:
            return [{"at": info.at, "size": info.size, "location": info.location} for info in await store.list()]

    rows = complete(work())
    if as_json:
        print_json(rows)
    else:
        print_table("snapshots", ("at", "size", "location"), rows)


@snapshot.command("export")
@click.option("--at", type=TxIdType(), help="The snapshot's edit.  [default: the newest that is intact]")
@journal_argument
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def export(at: int | None, uri: str, file: Path) -> None:
    """Write a snapshot's content to FILE, which only its owner may read. Its checksum is verified before FILE
    appears."""
    part = file.with_name(f"{file.name}.part")

    async def write(info: SnapshotInfo, chunks: AsyncGenerator[bytes, None]) -> None:
        with PartFile(part) as content:
            async for chunk in chunks:
                content.write(chunk)
            content.sync()

    async def work() -> SnapshotInfo:
        async with await open_snapshots(uri) as store:
            if at is None:
                newest = await restore_newest(store, write)
                if newest is None:
                    raise SnapshotNotFoundError(f"{uri} has no snapshot")
                return newest
            for info in await store.list():
                if info.at == at:
                    async with aclosing(store.read(at)) as chunks:
                        await write(info, chunks)
                    return info
            raise no_snapshot(at)

    try:
        info = complete(work())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    click.echo(f"the snapshot at edit {info.at}: {info.size} bytes")


@snapshot.command("import")
@click.option("--at", type=TxIdType(), required=True, help="The edit after which FILE is the state.")
@take_over_option
@journal_argument
@click.argument("file", type=click.File("rb"))
def import_snapshot(at: int, yes: bool, uri: str, file: BinaryIO) -> None:
    """Keep FILE as the journal's snapshot at an edit that is durable."""

    def content() -> Iterator[bytes]:
        yield from iter(partial(file.read, PIECE_BYTES), b"")

    info = as_owner(uri, yes, lambda writer: writer.save_snapshot(at, content()))
    click.echo(f"the snapshot at edit {info.at}: {info.size} bytes")


@snapshot.command()
@take_over_option
@journal_argument
@click.argument("at", metavar="TXID", type=TxIdType())
def delete(yes: bool, uri: str, at: int) -> None:
    """Remove the snapshot at an edit."""

    async def remove(writer: JournalWriter) -> None:
        async with await open_snapshots(uri) as store:
            if all(info.at != at for info in await store.list()):
                raise no_snapshot(at)
            await writer.delete_snapshot(at)
            if any(info.at == at for info in await store.list()):
                raise UpgradeError(
                    f"the snapshot at edit {at} stays: an upgrade is in progress, and may be rolled back to it"
                )

    as_owner(uri, yes, remove)
    click.echo(f"removed: the snapshot at edit {at}")
