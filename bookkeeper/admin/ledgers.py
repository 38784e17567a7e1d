"""``bk ledger``: append, read, tail, show, list, entries, recover, delete.

``append`` creates a ledger, writes, closes it and prints its id: a ledger is never reopened for writing.
``read``, ``tail`` and ``show`` never fence; ``recover`` does, and says what it found (D17).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from bookkeeper.admin.operations import entries
from bookkeeper.admin.options import (
    connected,
    counted,
    finish,
    json_option,
    ledger_argument,
    metadata_option,
    password_option,
    print_json,
    print_table,
)
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import NO_ENTRY
from bookkeeper.ledger import LedgerMetadata

if TYPE_CHECKING:
    from rich.progress import Progress

    from bookkeeper.client.bookkeeper import WhenShortName

_RUN = 512
"""Entries handed to the client at once: enough to be cheap, few enough to bound what waits in memory."""


@click.group()
def ledger() -> None:
    """Write, read and look after ledgers."""


ledger.add_command(entries)


@ledger.command()
@metadata_option
@password_option
@json_option
@click.argument("source", type=click.File("rb"), default="-")
@click.option(
    "--size", type=click.IntRange(0), metavar="BYTES", help="Write entries of this many bytes instead of lines."
)
@click.option("--count", type=click.IntRange(1), default=1000, show_default=True, help="With --size: how many entries.")
@click.option("--ensemble", type=click.IntRange(1), default=3, show_default=True, help="Bookies that share the ledger.")
@click.option("--write-quorum", type=click.IntRange(1), default=3, show_default=True, help="Copies of each entry.")
@click.option("--ack-quorum", type=click.IntRange(1), default=2, show_default=True, help="Copies that must be durable.")
@click.option("--digest", type=click.Choice(["crc32c", "crc32", "hmac", "dummy"]), default="crc32c", show_default=True)
@click.option(
    "--when-short",
    type=click.Choice(["fail", "name_absent"]),
    default="fail",
    show_default=True,
    help="With fewer bookies up than the ensemble needs: fail, or name absent ones while an ack quorum is up.",
)
def append(
    metadata: str,
    password: str,
    as_json: bool,
    source: BinaryIO,
    size: int | None,
    count: int,
    ensemble: int,
    write_quorum: int,
    ack_quorum: int,
    digest: str,
    when_short: WhenShortName,
) -> None:
    """Create a ledger, write the lines of SOURCE (default: standard input) as entries, close it, print its id."""

    async def work() -> tuple[int, int]:
        async with connected(metadata) as bk:
            writer = await bk.create_ledger(
                ensemble=ensemble,
                write_quorum=write_quorum,
                ack_quorum=ack_quorum,
                password=password.encode(),
                digest=digest,
                when_short=when_short,
            )
            try:
                async with writer:
                    entries = _lines(source) if size is None else (bytes(size) for _ in range(count))
                    with _progress(None if size is None else count) as advance:
                        for run in _runs(entries):
                            await writer.append_many(run)
                            advance(len(run))
            except BookKeeperError as error:
                error.add_note(f"ledger {writer.id} has {writer.last_add_confirmed + 1} confirmed entries")
                raise
            return int(writer.id), int(writer.last_add_confirmed)

    ledger_id, last = finish(work(), changes=True)
    if as_json:
        print_json({"ledger": ledger_id, "entries": last + 1})
    else:
        click.echo(ledger_id)


@ledger.command()
@metadata_option
@password_option
@json_option
@ledger_argument
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first entry to print.")
@click.option("--last", type=click.IntRange(0), help="The last entry to print.  [default: the last one confirmed]")
def read(metadata: str, password: str, as_json: bool, ledger_id: int, first: int, last: int | None) -> None:
    """Print a ledger's entries, a line each. Does not fence: a writer goes on."""

    async def work() -> None:
        async with (
            connected(metadata) as bk,
            await bk.open_ledger(ledger_id, password.encode(), recovery=False) as reader,
        ):
            confirmed = int(reader.last_add_confirmed)
            if last is not None and last > confirmed:
                raise click.ClickException(f"ledger {ledger_id} has {_span(confirmed)}: --last {last} is beyond")
            end = confirmed if last is None else last
            if first > end:
                return
            async for entry in reader.read(first, end):
                _print_entry(int(entry.entry_id), entry.payload, as_json)

    finish(work())


@ledger.command()
@metadata_option
@password_option
@json_option
@ledger_argument
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first entry to print.")
def tail(metadata: str, password: str, as_json: bool, ledger_id: int, first: int) -> None:
    """Print a ledger's entries as they are confirmed, until it is closed. Does not fence."""

    async def work() -> None:
        async with (
            connected(metadata) as bk,
            await bk.open_ledger(ledger_id, password.encode(), recovery=False) as reader,
        ):
            async for entry in reader.tail(first):
                _print_entry(int(entry.entry_id), entry.payload, as_json)

    finish(work())


@ledger.command()
@metadata_option
@json_option
@ledger_argument
def show(metadata: str, as_json: bool, ledger_id: int) -> None:
    """Show a ledger: its state, its quorums, and who holds what (ensembles by fragment)."""

    async def work() -> tuple[LedgerMetadata, set[str]]:
        async with connected(metadata) as bk:
            bookies = bk.metadata_store.bookies
            up = {*await bookies.writable(), *await bookies.read_only()}
            return await bk.metadata(ledger_id), {str(b) for b in up}

    found, up = finish(work())
    document = describe(ledger_id, found, up)
    if as_json:
        print_json(document)
        return
    ended = f"{_span(document['last_entry'])}, {document['length']} bytes" if found.is_closed else "end not decided yet"
    click.echo(
        f"ledger {ledger_id}: {document['state']}, {ended}, "
        f"E={document['ensemble']} Qw={document['write_quorum']} Qa={document['ack_quorum']}, {document['digest']}"
    )
    for key, value in document["custom"].items():
        click.echo(f"  {key} = {value}")
    print_table(counted(len(found.fragments), "fragment"), ["first_entry", "ensemble", "absent"], document["fragments"])
    if absent := sorted({bookie for fragment in document["fragments"] for bookie in fragment["absent"]}):
        click.echo(f"absent now: {', '.join(absent)}. What they hold is not readable from them until they are back.")


def _span(last: int | None) -> str:
    return "no entries" if last is None or last < 0 else f"entries 0..{last}"


def describe(ledger_id: int, found: LedgerMetadata, up: set[str]) -> dict[str, Any]:
    """A ledger as plain data. ``absent``: bookies of a fragment that are not registered now."""
    return {
        "ledger": ledger_id,
        "state": found.state.name,
        "last_entry": None if found.last_entry in (None, NO_ENTRY) else int(found.last_entry),
        "length": found.length,
        "ensemble": found.spec.ensemble_size,
        "write_quorum": found.spec.write_quorum,
        "ack_quorum": found.spec.ack_quorum,
        "digest": found.digest_type.name if found.digest_type else "not recorded",
        "custom": {key: value.decode(errors="backslashreplace") for key, value in found.custom.items()},
        "fragments": [
            {
                "first_entry": int(fragment.first_entry),
                "ensemble": [str(bookie) for bookie in fragment.ensemble],
                "absent": [str(bookie) for bookie in fragment.ensemble if bookie not in up],
            }
            for fragment in found.fragments
        ],
    }


@ledger.command("list")
@metadata_option
@json_option
def list_(metadata: str, as_json: bool) -> None:
    """List all ledgers: id, state, last entry, bytes."""

    async def work() -> list[dict[str, Any]]:
        rows = []
        async with connected(metadata) as bk:
            async for ledger_id in bk.list_ledgers():
                found = describe(int(ledger_id), await bk.metadata(ledger_id), set())
                rows.append({key: found[key] for key in ("ledger", "state", "last_entry", "length")})
        return rows

    rows = sorted(finish(work()), key=lambda row: row["ledger"])
    if as_json:
        print_json(rows)
    else:
        print_table(counted(len(rows), "ledger"), ["ledger", "state", "last_entry", "length"], rows)


@ledger.command()
@metadata_option
@password_option
@json_option
@ledger_argument
@click.option("--as-operator", is_flag=True, help="With the password that the metadata hold, instead of --password.")
def recover(metadata: str, password: str, as_json: bool, ledger_id: int, as_operator: bool) -> None:
    """Fence a ledger's writer, find its last entry, close it."""

    async def work() -> int:
        from bookkeeper.client.operators import Operator

        async with connected(metadata) as bk:
            if as_operator:
                return int((await Operator(bk).recover_ledger(ledger_id)).last_entry)
            async with await bk.open_ledger(ledger_id, password.encode(), recovery=True) as reader:
                return int(reader.last_add_confirmed)

    # The last attempt's reason is the error; those before it would only say the same.
    logging.getLogger("bookkeeper.client.recover").setLevel(logging.ERROR)
    last = finish(work(), changes=True)
    if as_json:
        print_json({"ledger": ledger_id, "last_entry": None if last < 0 else last})
    else:
        click.echo(f"ledger {ledger_id} is closed; " + (f"its last entry is {last}" if last >= 0 else "it is empty"))


@ledger.command()
@metadata_option
@ledger_argument
@click.confirmation_option("--yes", prompt="Delete the ledger for ever?", help="Do not ask.")
@click.option("--force", is_flag=True, help="Also if it is not closed and too few of its bookies answer to close it.")
def delete(metadata: str, ledger_id: int, force: bool) -> None:
    """Delete a ledger for ever, closing it first (which stops its writer). Its bookies reclaim the space later."""

    async def work() -> None:
        async with connected(metadata) as bk:
            await bk.delete_ledger(ledger_id, force=force)

    finish(work(), changes=True)


def _print_entry(entry_id: int, payload: bytes, as_json: bool) -> None:
    if as_json:
        print_json({"entry": entry_id, "payload": payload.decode(errors="backslashreplace")})
    else:
        sys.stdout.buffer.write(payload + b"\n")
        sys.stdout.buffer.flush()


def _lines(source: BinaryIO) -> Iterator[bytes]:
    return (line.removesuffix(b"\n") for line in source)


def _runs(entries: Iterable[bytes]) -> Iterator[list[bytes]]:
    run: list[bytes] = []
    for entry in entries:
        run.append(entry)
        if len(run) == _RUN:
            yield run
            run = []
    if run:
        yield run


class _progress:
    """A bar on standard error when a person looks at it and the end is known; nothing otherwise."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._bar: Progress | None = None

    def __enter__(self) -> Any:
        if self._total is None or not sys.stderr.isatty():
            return lambda count: None
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("appending"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._bar.start()
        task = self._bar.add_task("append", total=self._total)
        bar = self._bar
        return lambda count: bar.advance(task, count)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
