"""``bk ledger``: append, read, tail, show, list, entries, explain, underreplicated, repair, recover, delete, undelete,
metadata.

Which module has which verb is said by :mod:`bookkeeper.admin.ledger`.
``read``, ``tail`` and ``show`` never fence; ``recover`` does, and says what it found.
"""

from __future__ import annotations

import base64
import logging
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from bookkeeper.admin.command_group import CommandGroup
from bookkeeper.admin.ledger.accept_loss import recover_with_loss
from bookkeeper.admin.ledger.append import append
from bookkeeper.admin.ledger.copies import entries, read_copies
from bookkeeper.admin.ledger.deletions import delete, deleted_rows, undelete
from bookkeeper.admin.ledger.explain import explain
from bookkeeper.admin.ledger.ledger_metadata import ledger_metadata
from bookkeeper.admin.ledger.repairs import repair, underreplicated
from bookkeeper.admin.shared.answers import VerbAnswer, on_cluster, verb_on_cluster
from bookkeeper.admin.shared.options import (
    as_operator_option,
    finish,
    json_option,
    ledger_argument,
    metadata_option,
    moment,
    password_option,
    print_json,
    print_table,
)
from bookkeeper.amounts import counted, state_in_words
from bookkeeper.errors import BookKeeperError, MetadataFormatError
from bookkeeper.ids import NO_ENTRY
from bookkeeper.ledger import LedgerMetadata, LedgerState
from bookkeeper.option_types import WholeNumber

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

_UNREADABLE: Final = "UNREADABLE"
"""In place of the state of a ledger whose metadata cannot be read: it is to stand out."""


@click.group(cls=CommandGroup)
def ledger() -> None:
    """Write, read and manage ledgers."""


ledger.add_command(append)
ledger.add_command(entries)
ledger.add_command(explain)
ledger.add_command(underreplicated)
ledger.add_command(repair)
ledger.add_command(delete)
ledger.add_command(undelete)
ledger.add_command(ledger_metadata)


@ledger.command()
@metadata_option
@password_option
@json_option
@ledger_argument
@click.option(
    "--first", type=WholeNumber(0), metavar="ENTRY", default=0, show_default=True, help="The first entry to print."
)
@click.option(
    "--last",
    type=WholeNumber(0),
    metavar="ENTRY",
    help="The last entry to print.  [default: the last one confirmed]",
)
@click.option("--bookie", metavar="ID", help="Only this bookie's copies; the password is taken from the metadata.")
@as_operator_option
def read(
    metadata: str,
    password: str,
    as_json: bool,
    ledger_id: int,
    first: int,
    last: int | None,
    bookie: str | None,
    as_operator: bool,
) -> None:
    """Print a ledger's entries, one per line. This does not fence the ledger: its writer can continue.

    With --bookie one bookie is asked and no other: what it lacks, or has a damaged copy of, is told in its place on
    standard error, and the exit status is 1.
    """
    if last is not None and last < first:
        raise click.UsageError(f"--last {last} is before --first {first}")
    if bookie is not None:
        read_copies(metadata, ledger_id, bookie, first, last, as_json, partial(_print_entry, as_json=as_json))
        return

    @on_cluster()
    async def work(bk: BookKeeper) -> None:
        given = None if as_operator else password.encode()
        async with await bk.open_ledger(ledger_id, given, recovery=False) as reader:
            confirmed = int(reader.last_add_confirmed)
            if last is not None and last > confirmed:
                raise click.ClickException(
                    f"ledger {ledger_id} has {_span(confirmed)}: --last {last} is beyond its end"
                )
            end = confirmed if last is None else last
            if first > end:
                return
            async for entry in reader.read(first, end):
                _print_entry(int(entry.entry_id), entry.payload, as_json)

    work(metadata=metadata)


@ledger.command()
@metadata_option
@password_option
@json_option
@ledger_argument
@click.option(
    "--first", type=WholeNumber(0), metavar="ENTRY", default=0, show_default=True, help="The first entry to print."
)
@as_operator_option
def tail(metadata: str, password: str, as_json: bool, ledger_id: int, first: int, as_operator: bool) -> None:
    """Print a ledger's entries as they are confirmed, until it is closed. This does not fence it."""

    @on_cluster()
    async def work(bk: BookKeeper) -> None:
        given = None if as_operator else password.encode()
        async with await bk.open_ledger(ledger_id, given, recovery=False) as reader:
            async for entry in reader.tail(first):
                _print_entry(int(entry.entry_id), entry.payload, as_json)

    work(metadata=metadata)


@ledger.command()
@verb_on_cluster()
@ledger_argument
async def show(bk: BookKeeper, ledger_id: int) -> VerbAnswer:
    """Show a ledger: its state, its quorums, and the ensemble of each fragment."""
    up = await bk.metadata_store.bookies.registered()
    found = await bk.metadata(ledger_id)
    document = describe(ledger_id, found, {str(bookie) for bookie in up})
    return VerbAnswer(document, lambda: _print_report(document, found.is_closed))


def _print_report(document: Mapping[str, Any], is_closed: bool) -> None:
    ended = f"{_span(document['last_entry'])}, {document['length']} bytes" if is_closed else "it is not closed yet"
    click.echo(
        f"ledger {document['ledger']}: {state_in_words(document['state'])}, {ended}, "
        f"E={document['ensemble']} Qw={document['write_quorum']} Qa={document['ack_quorum']}, {document['digest']}"
    )
    for key, value in document["custom"].items():
        click.echo(f"  {key} = {value}")
    fragments = document["fragments"]
    print_table(counted(len(fragments), "fragment"), ["first_entry", "ensemble", "absent"], fragments)
    if absent := sorted({bookie for fragment in fragments for bookie in fragment["absent"]}):
        click.echo(f"absent now: {', '.join(absent)}. Their copies cannot be read until these bookies are back.")


def _span(last: int | None) -> str:
    return "no entries" if last is None or last < 0 else f"entries 0..{last}"


def describe(ledger_id: int, found: LedgerMetadata, up: set[str]) -> dict[str, Any]:
    """Describe a ledger as plain data. ``absent`` names the bookies of a fragment that are not registered now."""
    return {
        "ledger": ledger_id,
        "state": found.state.name,
        "last_entry": None if found.last_entry in (None, NO_ENTRY) else int(found.last_entry),
        "length": found.length,
        "ensemble": found.spec.ensemble_size,
        "write_quorum": found.spec.write_quorum,
        "ack_quorum": found.spec.ack_quorum,
        "digest": found.digest_type.name if found.digest_type else "not recorded",
        "custom": {key: _custom(value) for key, value in found.custom.items()},
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
@click.option("--deleted", is_flag=True, help="The deleted ledgers that can be brought back, and until when.")
@click.option("--bookie", metavar="ID", help="Only ledgers with a fragment that names this bookie.")
@click.option("--state", type=click.Choice(["open", "in-recovery", "closed"]), help="Only ledgers in this state.")
def list_(metadata: str, as_json: bool, deleted: bool, bookie: str | None, state: str | None) -> None:
    """List ledgers: id, state, last entry, bytes. By default all of them.

    A ledger whose metadata cannot be read is listed with any filter: it may be one of those that are asked for.
    """
    if deleted:
        if bookie or state:
            raise click.UsageError("--deleted lists all deleted ledgers: leave --bookie and --state out")
        rows = finish(deleted_rows(metadata))
        if as_json:
            print_json(rows)
        else:
            for row in rows:
                row["state"] = state_in_words(row["state"])
                row.update(deleted=moment(row["deleted_ms"]), until=moment(row["until_ms"]))
            columns = ["ledger", "state", "last_entry", "length", "deleted", "until"]
            print_table(counted(len(rows), "deleted ledger"), columns, rows)
        return

    @on_cluster()
    async def work(bk: BookKeeper) -> VerbAnswer:
        from bookkeeper.client.operators import Operator, require_bookies

        rows: list[dict[str, Any]] = []
        async for ledger_id, found in Operator(bk).all_metadata():
            if isinstance(found, MetadataFormatError):
                rows.append({"ledger": int(ledger_id), "state": _UNREADABLE, "last_entry": None, "length": None})
            elif isinstance(found, BookKeeperError):
                raise found
            elif _is_wanted(found, bookie, state):
                row = describe(int(ledger_id), found, set())
                rows.append({key: row[key] for key in columns})
        rows.sort(key=lambda row: row["ledger"])
        if bookie is not None and not any(row["state"] != _UNREADABLE for row in rows):
            bookies = bk.metadata_store.bookies
            require_bookies([bookie], sorted({*await bookies.known(), *await bookies.registered()}))
        return VerbAnswer(
            rows, lambda: print_table(counted(len(rows), "ledger"), columns, list(map(_for_people, rows)))
        )

    columns = ["ledger", "state", "last_entry", "length"]
    work(metadata=metadata, as_json=as_json)


def _for_people(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row of the list: how long a ledger is, is known when it is closed."""
    if row["state"] == _UNREADABLE:
        return row
    length = row["length"] if row["state"] == LedgerState.CLOSED.name else None
    return {**row, "state": state_in_words(row["state"]), "length": length}


def _is_wanted(found: LedgerMetadata, bookie: str | None, state: str | None) -> bool:
    if state is not None and found.state.name != state.upper().replace("-", "_"):
        return False
    return bookie is None or bookie in found.bookies


@ledger.command()
@metadata_option
@password_option
@json_option
@ledger_argument
@as_operator_option
@click.option(
    "--accept-loss",
    is_flag=True,
    help="If too few bookies answer to find the end: say what has to be given up, ask, and close the ledger at the "
    "last entry that can be read. No password is needed.",
)
@click.option("--yes", is_flag=True, help="With --accept-loss: do not ask for confirmation.")
def recover(
    metadata: str, password: str, as_json: bool, ledger_id: int, as_operator: bool, accept_loss: bool, yes: bool
) -> None:
    """Fence a ledger's writer, find the last entry, close the ledger.

    It never closes a ledger while acknowledged entries may be missing, except with --accept-loss.
    """
    # The last attempt's reason is the error; earlier ones would repeat it.
    logging.getLogger("bookkeeper.client.ledgers.ledger_recovery").setLevel(logging.ERROR)
    if accept_loss:
        recover_with_loss(metadata, ledger_id, yes, as_json)
        return

    @on_cluster(changes=True)
    async def work(bk: BookKeeper) -> VerbAnswer:
        from bookkeeper.client.operators import Operator

        if as_operator:
            last = int((await Operator(bk).recover_ledger(ledger_id)).last_entry)
        else:
            async with await bk.open_ledger(ledger_id, password.encode(), recovery=True) as reader:
                last = int(reader.last_add_confirmed)
        document = {"ledger": ledger_id, "last_entry": None if last < 0 else last}
        end = f"its last entry is {last}" if last >= 0 else "it is empty"
        return VerbAnswer(document, f"ledger {ledger_id} is closed; {end}")

    work(metadata=metadata, as_json=as_json)


def _custom(value: bytes) -> str | dict[str, str]:
    """An application's value in the metadata: text, or else encoded bytes."""
    shown = _as_json(value)
    return shown["payload"] if shown["encoding"] == "utf-8" else shown


def _as_json(payload: bytes) -> dict[str, str]:
    """The payload and its encoding: text as it is, other bytes in base64, so that no byte is lost."""
    try:
        return {"payload": payload.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError:
        return {"payload": base64.b64encode(payload).decode(), "encoding": "base64"}


def _print_entry(entry_id: int, payload: bytes, as_json: bool) -> None:
    if as_json:
        print_json({"entry": entry_id, **_as_json(payload)})
    else:
        sys.stdout.buffer.write(payload + b"\n")
        sys.stdout.buffer.flush()
