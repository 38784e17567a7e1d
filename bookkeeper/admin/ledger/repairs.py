"""``bk ledger underreplicated`` and ``bk ledger repair``: which ledgers lack copies, and making one whole now."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from bookkeeper.admin.shared.amounts import byte_count
from bookkeeper.admin.shared.answers import VerbAnswer, verb_on_cluster
from bookkeeper.admin.shared.options import ledger_argument, moment, print_table
from bookkeeper.admin.shared.progress import status_line
from bookkeeper.amounts import counted, size_in_words
from bookkeeper.option_types import Number
from bookkeeper.replication.config import DrainConfig
from bookkeeper.settings import default_of

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.replication.repairs import LedgerRepair


@click.command()
@verb_on_cluster()
@click.option("--missing", metavar="ID", help="Only the ledgers that this bookie lacks entries of.")
async def underreplicated(bk: BookKeeper, missing: str | None) -> VerbAnswer:
    """List the ledgers that lack copies: since when, on which bookies, and why they are stuck.

    Exit status 1: there are some.
    """

    from bookkeeper.autorecovery.marked import marked_ledgers

    found = await marked_ledgers(bk.metadata_store, missing)
    document = [
        {
            "ledger": each.ledger_id,
            "bookies": list(each.bookies),
            "since_ms": each.since_ms,
            "stuck": each.reason or None,
            "tries": each.tries,
        }
        for each in found
    ]
    if not found:
        return VerbAnswer(document, "no ledger is under-replicated" + (f" on {missing}" if missing else ""))
    rows = [
        {"ledger": m.ledger_id, "since": moment(m.since_ms, "not known"), "bookies": list(m.bookies), "stuck": m.reason}
        for m in found
    ]
    title, columns = counted(len(rows), "under-replicated ledger"), ["ledger", "since", "bookies", "stuck"]
    return VerbAnswer(document, lambda: print_table(title, columns, rows), is_good=False)


@click.command()
@verb_on_cluster(changes=True)
@ledger_argument
@click.option(
    "--throttle",
    callback=byte_count,
    metavar="BYTES/S",
    help="The most bytes a second that are copied, for example 20M.  [default: no limit]",
)
@click.option(
    "--grace",
    type=Number(0),
    metavar="SECONDS",
    default=default_of(DrainConfig, "grace_ms") / 1000,
    show_default=True,
    help="How long an open ledger of a lost bookie is left to its writer before it is recovered.",
)
async def repair(bk: BookKeeper, ledger_id: int, throttle: int | None, grace: float) -> VerbAnswer:
    """Make one ledger whole now: copy what is missing, check every copy, and remove the ledger's mark.

    It works without autorecovery, and also while that is disabled. Exit status 1: the ledger is not whole, and the
    output says why.
    """

    from bookkeeper.ids import LedgerId
    from bookkeeper.replication.repairs import repair_once

    with repair_progress(ledger_id) as (report, on_copied):
        done = await repair_once(
            bk,
            LedgerId(ledger_id),
            owner=f"bk ledger repair on {platform.node()}:{os.getpid()}",
            grace_s=grace,
            bytes_per_s=throttle or 0,
            report=report,
            on_copied=on_copied,
        )
    return VerbAnswer(_document(done), lambda: _print_report(done), is_good=done.whole)


def _document(done: LedgerRepair) -> dict[str, Any]:
    return {
        "ledger": done.ledger_id,
        "whole": done.whole,
        "deleted": done.deleted,
        "recovered": done.recovered,
        "copied": [
            {
                "first_entry": each.copy.first_entry,
                "from": each.copy.bookie,
                "to": each.target,
                "entries": each.entries,
                "bytes": each.size,
            }
            for each in done.copied
        ],
        "problems": done.problems,
    }


def _print_report(done: LedgerRepair) -> None:
    if done.deleted:
        click.echo(f"ledger {done.ledger_id} was deleted meanwhile")
        return
    if done.recovered:
        click.echo(f"ledger {done.ledger_id} was not closed: it was recovered and closed, which ends its writer")
    for each in done.copied:
        what = "completed on" if each.target == each.copy.bookie else f"moved from {each.copy.bookie} to"
        click.echo(
            f"{each.copy.span}: {what} {each.target}, {counted(each.entries, 'entry')}, {size_in_words(each.size)}"
        )
    if done.whole:
        copied = sum(each.entries for each in done.copied)
        click.echo(f"ledger {done.ledger_id} is whole" + ("" if copied else "; nothing had to be copied"))
        return
    click.echo(f"ledger {done.ledger_id} is not whole:")
    for problem in done.problems:
        click.echo(f"  {problem}")


@contextmanager
def repair_progress(ledger_id: int) -> Iterator[tuple[Callable[[str], None], Callable[[int, int], None]]]:
    """Show on a terminal what is being done and how much was copied; otherwise nothing."""
    doing, entries_done, bytes_done = "", 0, 0
    with status_line(f"ledger {ledger_id}") as update:

        def show() -> None:
            copied = f" ({counted(entries_done, 'entry')}, {size_in_words(bytes_done)} copied)" if entries_done else ""
            update(f"ledger {ledger_id}: {doing}{copied}")

        def report(what: str) -> None:
            nonlocal doing
            doing = what
            show()

        def on_copied(entries: int, size: int) -> None:
            nonlocal entries_done, bytes_done
            entries_done, bytes_done = entries_done + entries, bytes_done + size
            show()

        yield report, on_copied
