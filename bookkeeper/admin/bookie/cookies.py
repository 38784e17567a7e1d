"""``bk bookie cookie``: the cookies that say to which bookie directories belong, on the disk and in the metadata."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from bookkeeper.admin.bookie.stopped_bookie import StoppedBookie, whole_bookie
from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.options import connected, finish, json_option, metadata_option, print_json, print_table
from bookkeeper.bookie.identity.bookie_identity import COOKIE, read_identity
from bookkeeper.errors import KeyExistsError, MetadataFormatError, NoSuchKeyError, in_words
from bookkeeper.ids import BookieId, bookie_id
from bookkeeper.meta.records import cookies as cookie_format
from bookkeeper.meta.records.cookies import Cookie
from bookkeeper.real import system_seams
from bookkeeper.storage.base.durable_file import create_file


@click.group(cls=CommandGroup)
def cookie() -> None:
    """Show, make and remove cookies, which say to which bookie and cluster directories belong.

    A cookie is in each directory of a bookie (the file VERSION) and in the metadata; a bookie starts only if they
    agree.
    """


def _row(where: str, found: Cookie | None, problem: str | None = None) -> dict[str, Any]:
    if found is None:
        return {"where": where, "problem": problem or "there is none"}
    return {
        "where": where,
        "bookie": found.bookie_id,
        "journal": list(found.journal_dirs),
        "ledgers": list(found.ledger_dirs),
        "cluster": found.instance_id,
        "problem": problem,
    }


@cookie.command()
@metadata_option
@json_option
@whole_bookie
def show(bookie: StoppedBookie, metadata: str, as_json: bool) -> None:
    """Show the cookies of a bookie: in its directories, and in the metadata.

    Exit status 1: one is missing or damaged, or they do not agree.
    """
    identity = read_identity(bookie.disk, bookie.directory)
    found: list[tuple[str, Cookie | None, str | None]] = []
    for directory in dict.fromkeys(place for pair in bookie.pairs for place in reversed(pair)):
        path = os.path.join(directory, COOKIE)
        try:
            there = cookie_format.decode(bookie.disk.read_file(path)) if bookie.disk.exists(path) else None
            found.append((path, there, None))
        except MetadataFormatError as error:
            found.append((path, None, f"damaged: {error}"))
    name = identity.bookie_id if identity is not None else next((c.bookie_id for _, c, _ in found if c), None)
    if name is None:
        raise click.ClickException(f"{bookie.directory} does not say which bookie it belongs to")

    async def work() -> tuple[Cookie | None, str | None]:
        async with connected(metadata) as bk:
            try:
                return (await bk.metadata_store.cookies.read(BookieId(name))).value, None
            except NoSuchKeyError:
                return None, None
            except MetadataFormatError as error:
                return None, f"damaged: {error}"

    found.append(("metadata", *finish(work())))
    first = next((each for _, each, _ in found if each is not None), None)
    rows = [
        _row(where, each, problem or ("differs from the first" if each is not None and each != first else None))
        for where, each, problem in found
    ]
    if as_json:
        print_json(rows)
    else:
        columns = ["where", "bookie", "journal", "ledgers", "cluster", "problem"]
        print_table(f"cookies of {name}", columns, rows)
    if any(row["problem"] for row in rows):
        sys.exit(1)


@cookie.command()
@metadata_option
@whole_bookie
@click.option("--bookie-id", "name", metavar="ID", help="The bookie it belongs to.  [default: the bookie of --dir]")
@click.option("--output", metavar="FILE", help="A new file to write it to.  [default: print it]")
def generate(bookie: StoppedBookie, metadata: str, name: str | None, output: str | None) -> None:
    """Make the text of a bookie's cookie from its directories and its cluster; nothing else is changed.

    `bk bookie cookie create` puts it into the metadata; as the file VERSION in a directory it says that the directory
    is this bookie's.
    """
    identity = read_identity(bookie.disk, bookie.directory)
    chosen = name or (identity.bookie_id if identity is not None else None)
    if chosen is None:
        raise click.UsageError(f"{bookie.directory} does not say which bookie it belongs to: give --bookie-id")

    async def work() -> str | None:
        async with connected(metadata) as bk:
            return bk.metadata_store.instance_id

    try:
        made = Cookie(
            bookie_id=bookie_id(chosen),
            journal_dirs=tuple(dict.fromkeys(journal_dir for _, journal_dir in bookie.pairs)),
            ledger_dirs=tuple(ledger_dir for ledger_dir, _ in bookie.pairs),
            instance_id=finish(work()),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    text = cookie_format.encode(made)
    if output is None:
        click.echo(text.decode(), nl=False)
        return
    path = os.path.abspath(output)
    try:
        create_file(bookie.disk, path, text)
    except FileExistsError:
        raise click.ClickException(f"{path} exists already, and is not replaced") from None
    click.echo(f"the cookie of {chosen} is in {path}")


@cookie.command()
@metadata_option
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
def create(metadata: str, file: str, dry_run: bool) -> None:
    """Put the cookie of FILE (a VERSION file, or what `generate` made) into the metadata.

    A cookie that is there is not replaced, and neither is a cookie of another cluster taken.
    """
    try:
        made = cookie_format.decode(system_seams().disk.read_file(os.path.abspath(file)))
    except MetadataFormatError as error:
        raise MetadataFormatError(f"{file} is no cookie that can be used: {in_words(error)}") from error

    async def work() -> None:
        async with connected(metadata) as bk:
            there = bk.metadata_store
            if made.instance_id != there.instance_id:
                raise click.ClickException(
                    f"the cookie is of cluster {made.instance_id}, and this one is {there.instance_id}"
                )
            try:
                if (await there.cookies.read(made.bookie_id)).value == made:
                    return
                raise click.ClickException(f"the metadata hold another cookie of {made.bookie_id}; it stays")
            except NoSuchKeyError:
                pass
            if not dry_run:
                try:
                    await there.cookies.write(made, None)
                except KeyExistsError:
                    raise click.ClickException(f"another cookie of {made.bookie_id} was made just now") from None

    finish(work(), changes=True)
    would = "would have" if dry_run else "have"
    click.echo(f"the metadata {would} the cookie of {made.bookie_id}")


@cookie.command()
@metadata_option
@click.argument("name", metavar="ID")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(metadata: str, name: str, dry_run: bool, yes: bool) -> None:
    """Remove a bookie's cookie from the metadata, so that it can start again on empty directories.

    It then counts as a bookie that lost its disk, and copies back what its ledgers need. To take a bookie out of the
    cluster for good use `bk bookies decommission`. The cookie of a bookie that is registered is not removed.
    """

    async def work(remove: bool) -> Cookie | None:
        async with connected(metadata) as bk:
            there = bk.metadata_store
            if name in await there.bookies.registered():
                raise click.ClickException(f"{name} runs: stop it first (nothing was changed)")
            try:
                found = await there.cookies.read(BookieId(name))
            except NoSuchKeyError:
                raise click.ClickException(f"the metadata hold no cookie of {name}") from None
            if remove:
                await there.cookies.delete(BookieId(name), found.version)
            return found.value

    found = finish(work(False))
    assert found is not None
    if dry_run:
        click.echo(f"the cookie of {name} would be removed; its directories: {', '.join(found.ledger_dirs)}")
        return
    if not yes:
        click.confirm(f"Remove the cookie of {name} from the metadata?", abort=True, err=True)
    finish(work(True), changes=True)
    click.echo(f"the cookie of {name} is removed; on empty directories it may join again under this id")
