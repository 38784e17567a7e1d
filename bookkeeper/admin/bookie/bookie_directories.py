"""``bk bookie directories``, ``add-directory``, ``drain-directory``, ``lose-directory``: several ledger directories."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bookkeeper.admin.bookie.bookie import directory_option, send_command
from bookkeeper.admin.shared.options import json_option, print_json, print_table
from bookkeeper.amounts import counted, size_in_words
from bookkeeper.errors import BookKeeperError
from bookkeeper.real import system_seams
from bookkeeper.volumes.disks.volume_list import read_volumes
from bookkeeper.volumes.start.volume_directories import lose_offline

_place = click.argument("ledger_dir", type=click.Path(file_okay=False, path_type=Path))


@click.command()
@directory_option
@json_option
def directories(directory: Path, as_json: bool) -> None:
    """Show the ledger directories of a running bookie: their states, ledgers and free space."""
    rows = send_command(directory, "directories")["directories"]
    if as_json:
        print_json(rows)
        return
    shown = [
        {
            "number": row["number"] if row["number"] is not None else "",
            "directory": row["ledger_dir"],
            "state": row["state"],
            "ledgers": row["ledgers"],
            "free": size_in_words(row["free_bytes"]) if row["free_bytes"] is not None else "",
            "size": size_in_words(row["total_bytes"]) if row["total_bytes"] is not None else "",
            "remark": row["reason"] or (row["disk"] if row["disk"] not in (None, "writable") else "") or "",
        }
        for row in rows
    ]
    title = f"{len(rows)} ledger {'directory' if len(rows) == 1 else 'directories'}"
    print_table(title, ["number", "directory", "state", "ledgers", "free", "size", "remark"], shown)


@click.command("add-directory")
@directory_option
@_place
@click.option(
    "--journal-dir", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Directory of its journal."
)
def add_directory(directory: Path, ledger_dir: Path, journal_dir: Path | None) -> None:
    """Let a running bookie use one more directory, which exists and is empty, best on a disk of its own.

    Add it to ledger_dirs in the bookie's configuration, too: the next start needs it.
    """
    place = os.path.abspath(ledger_dir)
    options = {"journal_dir": os.path.abspath(journal_dir)} if journal_dir is not None else {}
    send_command(directory, "add-directory", ledger_dir=place, **options)
    click.echo(f"{place} is used for ledgers from now on; add it to ledger_dirs, the next start needs it")


@click.command("drain-directory")
@directory_option
@_place
def drain_directory(directory: Path, ledger_dir: Path) -> None:
    """Move everything off a directory of a running bookie, and let it go; wait until that is done.

    Ledgers are read and written meanwhile. Ctrl-C ends the waiting, not the work; a restart goes on with it.
    """
    place = os.path.abspath(ledger_dir)
    moved = send_command(directory, "drain-directory", ledger_dir=place)["moved"]
    click.echo(f"{place} is empty of ledgers, {counted(moved, 'ledger')} moved; take it out of ledger_dirs")


@click.command("lose-directory")
@directory_option
@click.argument("ledger_dir", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
def lose_directory(directory: Path, ledger_dir: Path, yes: bool) -> None:
    """Give up a directory whose disk is lost, whether the bookie runs or not.

    What this bookie has of the ledgers on it is gone. It is copied from other bookies.
    """
    place = os.path.abspath(ledger_dir)
    try:
        found = read_volumes(system_seams().disk, str(directory.resolve()))
    except BookKeeperError as error:
        raise click.ClickException(str(error)) from error
    if found is None:
        if not system_seams().disk.exists(str(directory)):
            raise click.ClickException(f"there is no bookie in {directory}: the directory does not exist")
        raise click.ClickException(
            f"the bookie in {directory} has one ledger directory, and cannot do without it: if its disk is lost, let "
            "the bookie join with empty directories under another --bookie-id"
        )
    entry = found.at(place)
    if entry is None:
        known = ", ".join(sorted(each.ledger_dir for each in found.serving))
        raise click.ClickException(f"{place} is not a ledger directory of this bookie; it has {known}")
    if not entry.state.serves:
        raise click.ClickException(f"{place} is {entry.state.value} already")
    if not yes:
        click.confirm(f"The copies on {place} are given up; other bookies must have copies. Continue?", abort=True)
    try:
        lost = send_command(directory, "lose-directory", ledger_dir=place)["lost"]
    except click.ClickException as error:
        if "no bookie runs" not in error.message:
            raise
        _lose_offline(directory, place)
        return
    click.echo(f"{place} is given up; {counted(lost, 'ledger')} will be copied from other bookies")


def _lose_offline(directory: Path, place: str) -> None:
    disk = system_seams().disk
    try:
        lock = disk.lock(str(directory / "bookie.lock"))
    except BlockingIOError:
        raise click.ClickException(f"a bookie starts or stops in {directory}: try again") from None
    try:
        lose_offline(disk, str(directory.resolve()), place)
    except BookKeeperError as error:
        raise click.ClickException(str(error)) from error
    finally:
        lock.release()
    click.echo(f"{place} is given up; take it out of ledger_dirs. The next start has its ledgers copied from others")
