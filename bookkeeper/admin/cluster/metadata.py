"""``bk metadata``: move a cluster's metadata to another store, back them up and restore them, accept a rollback, check
access lists."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncIterator
from typing import Any, Final, cast

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.shared.answers import VerbAnswer, on_cluster
from bookkeeper.admin.shared.options import (
    connected,
    finish,
    json_option,
    metadata_option,
    moment,
    print_json,
    print_table,
)
from bookkeeper.amounts import counted
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import ConfigError, MetadataFormatError, NoClusterError, SessionsLiveError, in_words
from bookkeeper.ids import Address, BookieId, bookie_id
from bookkeeper.meta import Metadata, service_uri
from bookkeeper.meta.backup import HEAD_MAX, MetadataBackup, instance_of, restore_backup, take_backup
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store_copy import CopyReport, StoreCopy
from bookkeeper.meta.store_steps import ClusterLocation
from bookkeeper.meta.stores.access_list import AccessStore, audit
from bookkeeper.option_types import Number, WholeNumber
from bookkeeper.real import system_seams
from bookkeeper.real.private import replace_private
from bookkeeper.replication.losses.rollback import KEEP_S, HeldLedgers, accept, list_held
from bookkeeper.seams import Lock, Seams


@click.group(cls=CommandGroup)
def metadata() -> None:
    """Manage a cluster's metadata."""


# -- copy ---------------------------------------------------------------------------------------------------


@metadata.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--resume", is_flag=True, help="Continue a copy that was interrupted.")
@json_option
def copy(source: str, target: str, resume: bool, as_json: bool) -> None:
    """Move a cluster's metadata to another store, while nothing runs.

    Stop bookies, gateways and clients first. Everything is copied, then compared byte for byte. From then on the
    cluster is at TO, and FROM refuses every bookie and client. Start the same bookies on the same directories with
    --metadata TO. New ledgers get ids above all that were issued.

    \b
      bk metadata copy embedded:///data/bk zk://zk1:2181,zk2:2181/ledgers
      bk bookie --metadata zk://zk1:2181,zk2:2181/ledgers --dir /data/bk/b1
    """
    began = time.monotonic()
    bar = _Bar(quiet=as_json)

    async def work() -> CopyReport:
        seams = system_seams()
        async with _location(source, seams, new=False) as old, _location(target, seams, new=True) as new:
            name = f"{seams.rng.getrandbits(64):016x}"
            return await StoreCopy(old, new, new_id=name, progress=bar.show).run(resume=resume)

    with bar:
        report = finish(work())
    if as_json:
        print_json(
            {
                "from": source,
                "to": target,
                "instance_id": report.instance_id,
                "already": report.already,
                "values": report.values,
                "bytes": report.bytes,
                "ledgers": report.ledgers,
                "kinds": report.kinds,
                "next_id": report.next_id,
            }
        )
    elif report.already:
        click.echo(f"instance {report.instance_id} is at {target} already: there was nothing left to do")
    else:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(report.kinds.items()) if number)
        click.echo(
            f"instance {report.instance_id} is now at {target}: {counted(report.ledgers, 'ledger')}, "
            f"{counted(report.values, 'value')}, {report.bytes} bytes, compared byte for byte, "
            f"in {time.monotonic() - began:.1f} s"
        )
        click.echo(f"  also copied: {kinds or 'nothing else'}; the next ledger id is {report.next_id} or above")
        click.echo(
            f"  {source} refuses bookies and clients from now on; start the bookies on their directories with "
            f"--metadata {target}"
        )


@contextlib.asynccontextmanager
async def _location(uri: str, seams: Seams, *, new: bool) -> AsyncIterator[ClusterLocation]:
    """Open the store at an address. The directory of an embedded cluster is locked meanwhile."""
    lock: Lock | None = None
    name = uri
    if uri.startswith("embedded:"):
        from bookkeeper.embedded import EmbeddedUri  # it loads a whole bookie

        address = EmbeddedUri.parse(uri)
        if new:
            seams.disk.make_directories(address.directory)
        name = service_uri.sqlite_uri(f"{address.directory}/metadata.sqlite")
        lock = _lock(address.directory, seams)
    try:
        parsed = service_uri.parse(name)
        if parsed.scheme == "memory":
            raise ConfigError(f"{uri} exists in one process only, so it cannot be copied")
        if not new and not service_uri.may_exist(parsed, seams):
            raise NoClusterError(f"there is no cluster at {uri}")
        if parsed.layout is not None:
            raise ConfigError(
                f"{uri}: give the address without a layout, because the copy keeps the layout of the ledgers"
            )
        store = await service_uri.open_store(parsed, seams)
        try:
            yield ClusterLocation(store, Paths(parsed.root), uri)
        finally:
            await store.close()
    finally:
        if lock is not None:
            lock.release()


def _lock(directory: str, seams: Seams) -> Lock:
    try:
        return seams.disk.lock(os.path.join(directory, "embedded.lock"))
    except BlockingIOError as error:
        raise SessionsLiveError(f"another process has {directory} open; stop that process first") from error
    except FileNotFoundError as error:
        raise NoClusterError(f"there is no cluster at embedded://{directory}") from error


class _Bar:
    """A progress line on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        self._progress = Progress(console=console, transient=True, disable=quiet or not console.is_terminal)
        self._tasks: dict[str, Any] = {}

    def show(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=None)
        self._progress.update(self._tasks[what], completed=done, total=total or None)

    def __enter__(self) -> None:
        self._progress.start()

    def __exit__(self, *exc_info: object) -> None:
        self._progress.stop()


# -- backups -------------------------------------------------------------------------------------------------


@metadata.command()
@metadata_option
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--keep",
    type=WholeNumber(1),
    metavar="N",
    help="Remove this cluster's oldest backups in DIR beyond so many.  [default: all]",
)
@json_option
def backup(metadata: str, directory: str, keep: int | None, as_json: bool) -> None:
    """Write a backup of a cluster's metadata into a new file in DIR, while everything runs.

    Run it by a timer. The file holds the passwords of ledgers, and only its owner may read it. Entries are not in it:
    bookies have several copies of each.
    """
    bar = _Bar(quiet=as_json)

    async def work() -> MetadataBackup:
        seams = system_seams()
        async with _location(metadata, seams, new=False) as place:
            return await take_backup(place, now_ms=seams.clock.wall_ms(), progress=bar.show)

    with bar:
        taken = finish(work())
    os.makedirs(directory, mode=0o700, exist_ok=True)
    moment_text = time.strftime("%Y%m%dT%H%M%S", time.gmtime(taken.taken_ms / 1000))
    path = os.path.join(directory, f"metadata-{moment_text}.{taken.taken_ms % 1000:03d}Z{BACKUP_END}")
    replace_private(path, "".join(taken.encode()))
    removed = _remove_oldest(path, taken.instance_id, keep) if keep is not None else []
    if as_json:
        print_json({"file": path, "ledgers": taken.ledgers, "values": len(taken.values), "removed": removed})
        return
    click.echo(f"{path}: {counted(taken.ledgers, 'ledger')}, {counted(len(taken.values), 'value')}")
    if removed:
        click.echo(f"removed: {', '.join(removed)}")


BACKUP_END: Final = ".backup"
_BACKUP_NAME: Final = re.compile(r"metadata-\d{8}T\d{6}\.\d{3}Z\.backup")


def _remove_oldest(path: str, instance_id: str, keep: int) -> list[str]:
    """Remove the oldest backups of this cluster beyond ``keep``, the newest of which is ``path``. Returns their names.

    What is dated later than ``path``, by a clock that was wrong, or belongs to another cluster, stays and counts for
    nothing.
    """
    directory, newest = os.path.split(path)
    names = [name for name in sorted(os.listdir(directory)) if _BACKUP_NAME.fullmatch(name) and name <= newest]
    own = [name for name in names if _cluster_of(os.path.join(directory, name)) == instance_id]
    for name in own[:-keep]:
        os.unlink(os.path.join(directory, name))
    return own[:-keep]


def _cluster_of(path: str) -> str | None:
    """The cluster of a backup, by its first line; None if that does not say."""
    try:
        with open(path, "rb") as file:
            return instance_of(file.readline(HEAD_MAX))
    except OSError:  # somebody else's
        return None


@metadata.command()
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))
@click.argument("target", metavar="TO")
@click.option("--resume", is_flag=True, help="Continue a restoration that was interrupted.")
@json_option
def restore(file: str, target: str, resume: bool, as_json: bool) -> None:
    """Put a backup of the metadata into an empty store at TO, compare it, and open the cluster there.

    What was created after the backup is lost, so bookies do not start there before `bk metadata accept-rollback`; leave
    them running until then, because it asks them what they hold.
    """
    bar = _Bar(quiet=as_json)

    async def work() -> CopyReport:
        seams = system_seams()
        async with _location(target, seams, new=True) as place:
            name = f"{seams.rng.getrandbits(64):016x}"
            return await restore_backup(found, place, new_id=name, progress=bar.show, resume=resume)

    try:
        with open(file, encoding="utf-8") as lines:
            found = MetadataBackup.decode(lines)
    except (MetadataFormatError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file}: {in_words(error)}") from error
    with bar:
        report = finish(work())
    if as_json:
        print_json({"to": target, "instance_id": report.instance_id, "ledgers": report.ledgers})
        return
    click.echo(
        f"instance {report.instance_id} is at {target}, as of {moment(found.taken_ms)}: "
        f"{counted(report.ledgers, 'ledger')}, compared byte for byte"
    )
    click.echo(f"continue with: bk metadata accept-rollback --metadata {target} (docs/metadata.md)")


# -- going on from an older state --------------------------------------------------------------------------


@metadata.command("accept-rollback")
@metadata_option
@click.option(
    "--bookie",
    "places",
    multiple=True,
    metavar="ID=HOST:PORT",
    help="The address of a bookie that is not registered and whose id is no address. May be repeated.",
)
@click.option(
    "--without", multiple=True, metavar="ID", help="Continue without this bookie's list of ledgers. May be repeated."
)
@click.option(
    "--keep",
    "keep_h",
    type=Number(0, 10 * 365 * 24),
    default=KEEP_S / 3600,
    show_default=True,
    metavar="HOURS",
    help="How long bookies keep ledgers that the metadata do not know.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def accept_rollback(
    metadata: str, places: tuple[str, ...], without: tuple[str, ...], keep_h: float, yes: bool, as_json: bool
) -> None:
    """Accept metadata that were put back to an older state, if no newer copy is left.

    The command asks running bookies which ledgers they hold, so leave them running. New ledgers get ids above all of
    those. The command lists ledgers that are in no metadata; bookies keep them for a time. Afterwards start every
    bookie, gateway and client again. What was written after the backup is lost: restore a newer backup if there is
    one.

    \b
      bk metadata accept-rollback -m zk://zk1:2181/ledgers --bookie b1=10.0.0.1:3181 --without b3
    """
    if as_json and not yes:
        raise click.UsageError("--json asks no questions: give --yes, too")
    addresses = dict(_place_of(text) for text in places)

    async def collect() -> HeldLedgers:
        async with _metadata_only(metadata) as client:
            return await list_held(client, addresses)

    async def accepted() -> tuple[HeldLedgers, int]:
        async with _metadata_only(metadata) as client:
            held = await list_held(client, addresses)
            return held, await accept(client, held, keep_s=int(keep_h * 3600), without=frozenset(without))

    if not yes:
        _show(finish(collect()))
        click.confirm("Go on from these metadata? Ledgers that they do not know are given up", abort=True)
    held, first = finish(accepted(), changes=True)
    if as_json:
        unknown = {str(ledger): bookies for ledger, bookies in held.unknown.items()}
        print_json({"next_id": first, "asked": held.asked, "away": held.away, "unknown": unknown})
        return
    if yes:
        _show(held)
    click.echo(f"accepted: new ledgers get the id {first} or above; start every bookie, gateway and client again")


def _show(held: HeldLedgers) -> None:
    for bookie, count in sorted(held.asked.items()):
        click.echo(f"{bookie} holds {counted(count, 'ledger')}")
    for bookie, reason in sorted(held.away.items()):
        click.echo(f"{bookie} does not answer: {reason}")
    if held.unknown:
        rows = [{"ledger": ledger, "held_by": list(bookies)} for ledger, bookies in held.unknown.items()]
        print_table(f"{counted(len(rows), 'ledger')} that the metadata do not know", ["ledger", "held_by"], rows)
    else:
        click.echo("the metadata know every ledger that these bookies hold")


def _place_of(text: str) -> tuple[BookieId, Address]:
    name, equals, place = text.partition("=")
    try:
        if not equals:
            raise ValueError(f"expected ID=HOST:PORT, got {text!r}")
        return bookie_id(name), Address.parse(place)
    except ValueError as error:
        raise click.UsageError(f"--bookie: {error}") from error


@contextlib.asynccontextmanager
async def _metadata_only(uri: str) -> AsyncIterator[BookKeeper]:
    """A client that starts no bookies, because those of an embedded cluster would refuse to start."""
    if not uri.startswith("embedded:"):
        async with connected(uri) as client:
            yield client
        return
    seams = system_seams()
    async with _location(uri, seams, new=False) as place:
        found = await Metadata.over(place.store, seams, root=place.paths.root)
        async with await BookKeeper.over(_BorrowedMetadata(found), seams=seams) as client:
            yield client


class _BorrowedMetadata:
    """Metadata that another owner closes."""

    net = None

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata

    async def close(self) -> None:
        """Does nothing: the owner closes them."""


# -- access lists -------------------------------------------------------------------------------------------


@metadata.command("audit-acls")
@metadata_option
@click.option("--fix", is_flag=True, help="Give the listed nodes the access list of this identity.")
@json_option
def audit_acls(metadata: str, fix: bool, as_json: bool) -> None:
    """Check a cluster's nodes in ZooKeeper, and list those that others than their creator may use.

    Run it with the credentials of the bookies: BK_ZOOKEEPER names the file with them. The exit status is 1 if nodes
    are listed and were not fixed.
    """

    @on_cluster(changes=fix)
    async def work(bk: BookKeeper) -> VerbAnswer:
        store = bk.metadata_store.store
        if not hasattr(store, "access"):
            raise click.ClickException(f"{metadata} has no access lists: everybody who may open the file may change it")
        listed = cast(AccessStore, store)
        found = [deviation async for deviation in audit(listed, bk.metadata_store.paths)]
        if fix:
            await asyncio.gather(*(listed.take(deviation.path) for deviation in found))
        rows = [{"path": deviation.path, "problem": deviation.problem, "fixed": fix} for deviation in found]
        if not rows:
            return VerbAnswer(rows, "only the creator of each node may use it: there is nothing to fix")
        return VerbAnswer(
            rows, lambda: print_table(counted(len(rows), "node"), ["path", "problem", "fixed"], rows), is_good=fix
        )

    work(metadata=metadata, as_json=as_json)


# -- show ---------------------------------------------------------------------------------------------------


@metadata.command()
@metadata_option
@json_option
def show(metadata: str, as_json: bool) -> None:
    """Show which cluster this is: its instance id, root, ledger layout, and the copies that it went through."""

    @on_cluster()
    async def work(bk: BookKeeper) -> VerbAnswer:
        found = bk.metadata_store
        document = {
            "metadata": metadata,
            "instance_id": found.instance_id,
            "root": found.paths.root,
            "layout": found.layout.name.lower(),
            "copies": [copied.id for copied in found.lineage.copies],
            "bookies_known": len(await found.bookies.known()),
        }
        rows = [{"what": key.replace("_", " "), "value": value} for key, value in document.items()]
        return VerbAnswer(document, lambda: print_table(metadata, ["what", "value"], rows))

    work(metadata=metadata, as_json=as_json)
