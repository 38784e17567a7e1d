"""``bk ledger metadata ID export|restore``: a ledger's metadata as they are stored, out of the store and back."""

from __future__ import annotations

import os
from contextlib import suppress

import click

from bookkeeper.admin.shared.options import connected, finish, ledger_argument, metadata_option
from bookkeeper.amounts import counted
from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import LedgerId
from bookkeeper.meta.records import ledger_format
from bookkeeper.real import system_seams


@click.command("metadata")
@metadata_option
@ledger_argument
@click.argument("action", type=click.Choice(["export", "restore"]))
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--dry-run", is_flag=True, help="With restore: only show what would be done.")
@click.option("--yes", is_flag=True, help="With restore: do not ask for confirmation.")
def ledger_metadata(metadata: str, ledger_id: int, action: str, file: str, dry_run: bool, yes: bool) -> None:
    """Write a ledger's metadata into a new FILE (export), or put those of FILE back (restore).

    The bytes are those of the metadata store, in Apache BookKeeper's format, and hold the ledger's password. They are
    put back only where there are none, or none that can be read. Older metadata lack the fragments that came later,
    and with them their entries: put back the newest there are. A ledger that was deleted comes back by
    `bk ledger undelete`.
    """
    path = os.path.abspath(file)
    if action == "export":
        _export(metadata, ledger_id, path)
    else:
        _restore(metadata, ledger_id, path, dry_run, yes)


def _export(metadata: str, ledger_id: int, path: str) -> None:
    async def work() -> bytes:
        async with connected(metadata) as bk:
            return await bk.metadata_store.ledgers.stored(LedgerId(ledger_id))

    from bookkeeper.storage.base.durable_file import create_file

    value = finish(work())
    try:
        create_file(system_seams().disk, path, value)
    except FileExistsError:
        raise click.ClickException(f"{path} exists already, and is not replaced") from None
    except OSError:
        with suppress(OSError):  # a part of them is of no use, and would be in the way of the next try
            os.unlink(path)
        raise
    click.echo(f"the metadata of ledger {ledger_id}, {len(value)} bytes, are in {path}")
    try:
        ledger_format.decode(value)
    except MetadataFormatError as error:
        raise click.ClickException(f"they were written as they are stored, but cannot be read: {error}") from error


def _restore(metadata: str, ledger_id: int, path: str, dry_run: bool, yes: bool) -> None:
    try:
        value = system_seams().disk.read_file(path)
    except FileNotFoundError:
        raise click.ClickException(f"{path} does not exist") from None
    try:
        found = ledger_format.decode(value)
    except MetadataFormatError as error:
        raise click.ClickException(f"{path} does not have the metadata of a ledger: {error}") from error

    async def work(only_look: bool) -> bool:
        async with connected(metadata) as bk:
            return await bk.metadata_store.ledgers.put_back(LedgerId(ledger_id), value, dry_run=only_look)

    if not finish(work(True)):
        click.echo(f"ledger {ledger_id} has these metadata: nothing is changed")
        return
    state = found.state.name.lower().replace("_", " ")
    what = f"ledger {ledger_id}: {state}, {counted(len(found.fragments), 'fragment')}"
    if dry_run:
        click.echo(f"would put back {what}")
        return
    if not yes:
        click.confirm(f"Restore {what}? Entries of later fragments would be lost", abort=True, err=True)
    finish(work(False), changes=True)
    click.echo(f"put back {what}")
