"""``bk journal list``, ``show``, ``select``, ``dump``, ``verify``: they change nothing and fence nobody."""

from __future__ import annotations

import base64
import sys
from contextlib import AsyncExitStack
from typing import Any

import click

from bookkeeper.admin.shared.options import connected, json_option, metadata_option, print_json, print_table
from bookkeeper.amounts import counted
from journal_manager.commands.shared import TxIdType, complete, first_edit, journal_argument, segment_row
from journal_manager.edits import MissingEdits, Piece, best_piece
from journal_manager.errors import JournalError
from journal_manager.journals.capabilities import DescribableReader
from journal_manager.journals.open_journal import open_reader, open_snapshots
from journal_manager.read import read_ops


@click.command("list")
@metadata_option
@json_option
def list_command(metadata: str, as_json: bool) -> None:
    """List the journals of a cluster."""

    async def work() -> tuple[str, ...]:
        from journal_manager.backends.bookkeeper.journal_node import journal_names

        async with connected(metadata) as bk:
            return await journal_names(bk.metadata_store)

    names = complete(work())
    if as_json:
        print_json(list(names))
        return
    if not names:
        click.echo("there are no journals")
    for name in names:
        click.echo(name)


@click.command()
@json_option
@journal_argument
def show(as_json: bool, uri: str) -> None:
    """Show a journal: its owner, its segments, its snapshots."""

    async def work() -> dict[str, Any]:
        async with await open_reader(uri) as reader, await open_snapshots(uri) as store:
            document: dict[str, Any] = {"journal": uri}
            if isinstance(reader, DescribableReader):
                found = await reader.describe()
                document["namespace"] = {
                    "namespace_id": found.namespace.namespace_id,
                    "cluster_id": found.namespace.cluster_id,
                    "pool_id": found.namespace.pool_id,
                }
                document["epoch"], document["owner"] = found.token.epoch, found.token.owner
                document["layout"], document["upgraded_at"] = found.namespace.layout_version, found.upgraded_at
                if found.node_bytes is not None and found.node_bytes_max is not None:
                    document["node"] = {"bytes": found.node_bytes, "max": found.node_bytes_max}
            document["segments"] = [segment_row(segment) for segment in await reader.segments()]
            document["snapshots"] = [
                {"at": info.at, "size": info.size, "location": info.location} for info in await store.list()
            ]
            return document

    document = complete(work())
    if as_json:
        print_json(document)
        return
    if "epoch" in document:
        owner = f" of {document['owner']}" if document["owner"] else ""
        click.echo(f"{uri}: epoch {document['epoch']}{owner}")
        if document["upgraded_at"] is not None:
            click.echo(f"an upgrade is in progress; it can be rolled back to edit {document['upgraded_at']}")
    if "node" in document:
        size, most = document["node"]["bytes"], document["node"]["max"]
        advice = "; purge what newer snapshots hold (bk journal purge)" if size >= most // 2 else ""
        click.echo(f"its node is {100 * size // most} % full ({size} of {most} bytes){advice}")
    print_table("segments", ("first", "last", "state", "epoch", "layout", "location"), document["segments"])
    print_table("snapshots", ("at", "size", "location"), document["snapshots"])


@click.command("select")
@json_option
@click.option("--from", "start", type=TxIdType(), help="The first edit that is wanted.  [default: the oldest there is]")
@click.argument("uris", metavar="JOURNAL...", nargs=-1, required=True)
def select_command(as_json: bool, start: int | None, uris: tuple[str, ...]) -> None:
    """Show which segment each edit would be read from.

    Several journals must hold copies of one log. The longest final segment is taken, wherever it is. Exit status 1: an
    edit is missing in all of them.
    """

    async def work() -> tuple[list[dict[str, object]], MissingEdits | None]:
        async with AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(await open_reader(uri)) for uri in uris]
            listings = [await reader.segments() for reader in readers]
        wanted = start or min((listing[0].first for listing in listings if listing), default=1)
        rows: list[dict[str, object]] = []
        while isinstance(piece := best_piece(listings, wanted), Piece):
            rows.append({"from": wanted, "journal": uris[piece.journal], **segment_row(piece.segment)})
            if piece.segment.last is None:
                return rows, None
            wanted = piece.segment.last + 1
        return rows, piece

    rows, gap = complete(work())
    if as_json:
        missing = None if gap is None else {"wanted": gap.wanted, "next": gap.next_available}
        print_json({"segments": rows, "missing": missing})
    else:
        print_table("segments", ("from", "first", "last", "state", "journal", "location"), rows)
        if gap is not None:
            click.echo(str(gap.error()))
    if gap is not None:
        sys.exit(1)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document per line, the body in base64.")
@click.option("--from", "start", type=TxIdType(), help="The first edit to print.  [default: the oldest there is]")
@click.option("--to", "end", type=TxIdType(), help="The last edit to print.  [default: the last one that is durable]")
@journal_argument
def dump(as_json: bool, start: int | None, end: int | None, uri: str) -> None:
    """Print a journal's edits, one per line: transaction id, opcode, length, body."""

    async def work() -> None:
        async with await open_reader(uri) as reader:
            async for op in read_ops(reader, start or await first_edit(reader), end):
                if as_json:
                    print_json({"txid": op.txid, "opcode": op.opcode, "body": base64.b64encode(op.body).decode()})
                else:
                    shown = op.body.decode("ascii", "backslashreplace").encode("unicode_escape").decode()
                    click.echo(f"{op.txid}\t{op.opcode}\t{len(op.body)}\t{shown}")

    complete(work())


@click.command()
@json_option
@journal_argument
def verify(as_json: bool, uri: str) -> None:
    """Read every edit and every snapshot of a journal, and say what is damaged or missing.

    Exit status 1: something is.
    """

    async def work() -> dict[str, Any]:
        problems: list[str] = []
        edits = 0
        async with await open_reader(uri) as reader, await open_snapshots(uri) as store:
            start = await first_edit(reader)
            try:
                async for _ in read_ops(reader, start):
                    edits += 1
            except JournalError as error:
                problems.append(str(error))
            infos = await store.list()
            for info in infos:
                try:
                    async for _ in store.read(info.at):
                        pass
                except JournalError as error:
                    problems.append(str(error))
                if info.at < start - 1:
                    problems.append(f"the edits after the snapshot at edit {info.at} were purged")
        return {"journal": uri, "first": start, "edits": edits, "snapshots": len(infos), "problems": problems}

    found = complete(work())
    if as_json:
        print_json(found)
    else:
        read = f"{counted(found['edits'], 'edit')} from {found['first']} on, {counted(found['snapshots'], 'snapshot')}"
        click.echo(f"{uri}: {read}")
        for problem in found["problems"]:
            click.echo(problem)
    if found["problems"]:
        sys.exit(1)
