"""``bk ledger read --bookie``: the copies that one bookie has of a ledger's entries."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from bookkeeper.admin.shared.answers import VerbAnswer, verb_on_cluster
from bookkeeper.admin.shared.options import connected, finish, ledger_argument, print_json, print_table
from bookkeeper.amounts import counted
from bookkeeper.errors import BookieUnavailableError, BookKeeperError, NoSuchLedgerError, in_words

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.client.operators import Operator
    from bookkeeper.ledger import LedgerMetadata


_RUNS_SHOWN = 8


@click.command()
@verb_on_cluster()
@ledger_argument
@click.option(
    "--bookie", "names", multiple=True, metavar="ID", help="Query this bookie.  [default: all that should have entries]"
)
async def entries(bk: BookKeeper, ledger_id: int, names: tuple[str, ...]) -> VerbAnswer:
    """Ask a ledger's bookies which entries they hold, and show which entries they lack."""
    from bookkeeper.client.operators import Operator

    operator = Operator(bk)
    members = sorted((await operator.metadata(ledger_id)).bookies)
    rows = [await _entries(operator, ledger_id, name) for name in names or members]
    shown = [{**row, "entries": _some(row["entries"])} for row in rows]
    title, columns = f"ledger {ledger_id} on {counted(len(rows), 'bookie')}", ["bookie", "entries", "held", "missing"]
    return VerbAnswer(
        rows,
        lambda: print_table(title, [*columns, "problem"], shown),
        is_good=not any(row["problem"] or row["missing"] for row in rows),
    )


async def _entries(operator: Operator, ledger_id: int, name: str) -> dict[str, Any]:
    """``missing`` counts entries that the metadata give to the bookie and that it lacks, in fragments with an end."""
    from bookkeeper.ids import BookieId
    from bookkeeper.replication.copying import copies_of
    from bookkeeper.wire.availability import HeldEntries

    row: dict[str, Any] = {"bookie": name, "entries": [], "held": 0, "missing": None, "problem": None}
    found = await operator.metadata(ledger_id)
    try:
        held = await operator.entries_on(name, ledger_id)
    except NoSuchLedgerError:
        held = HeldEntries()
    except BookKeeperError as error:
        return {**row, "problem": str(error)}
    copies = copies_of(found, BookieId(name))
    missing = sum(entry not in held for copy in copies for run in copy.runs(found.spec, 4096) for entry in run)
    return {**row, "entries": [f"{a}..{b}" for a, b in held.runs()], "held": len(held), "missing": missing}


def _some(runs: list[str]) -> list[str]:
    return (
        runs
        if len(runs) <= _RUNS_SHOWN
        else [*runs[:_RUNS_SHOWN], f"and {counted(len(runs) - _RUNS_SHOWN, 'run')} more"]
    )


def read_copies(
    metadata: str,
    ledger_id: int,
    bookie: str,
    first: int,
    last: int | None,
    as_json: bool,
    show: Callable[[int, bytes], None],
) -> None:
    """Read the entries that a bookie must have, by the metadata, from it alone; ``show`` gets each good one.

    What it lacks, or cannot read, is told in its place on standard error. If it cannot be reached, the reading ends.
    Exit status 1: something was not read.
    """

    async def work() -> int:
        from bookkeeper.client.operators import Operator, require_bookies

        async with connected(metadata) as bk:
            operator = Operator(bk)
            found = await operator.metadata(ledger_id)
            if bookie not in found.bookies:
                require_bookies([bookie], await operator.all_bookies())
                click.echo(f"{bookie} has no entries of ledger {ledger_id}, and should not have any", err=True)
            end = last if last is not None else await _end(operator, ledger_id, found)
            bad = 0
            for entry_id in held_by(found, bookie, first, end):
                try:
                    entry = await operator.copy_on(bookie, ledger_id, entry_id)
                except BookieUnavailableError as error:
                    _missing(entry_id, in_words(error), as_json)
                    more = f"; {counted(bad, 'entry')} before it could not be read either" if bad else ""
                    raise click.ClickException(
                        f"{bookie} cannot be reached: from entry {entry_id} of ledger {ledger_id} on nothing was read"
                        + more
                    ) from error
                except BookKeeperError as error:
                    bad += 1
                    _missing(entry_id, in_words(error), as_json)
                else:
                    show(entry_id, entry.payload)
            return bad

    if bad := finish(work()):
        click.echo(f"bk: {counted(bad, 'entry')} of ledger {ledger_id} cannot be read from {bookie}", err=True)
        sys.exit(1)


async def _end(operator: Operator, ledger_id: int, found: LedgerMetadata) -> int:
    """The last entry, or the last one confirmed of a ledger that is open."""

    if found.is_closed and found.last_entry is not None:
        return int(found.last_entry)
    async with await operator.open_ledger(ledger_id) as reader:
        return int(reader.last_add_confirmed)


def held_by(found: LedgerMetadata, bookie: str, first: int, last: int) -> Iterator[int]:
    """The entries from ``first`` to ``last`` that a bookie must have."""
    for index, fragment in enumerate(found.fragments):
        if bookie not in fragment.ensemble:
            continue
        position, end = list(fragment.ensemble).index(bookie), found.fragment_end(index)  # type: ignore[arg-type]
        stop = last if end is None else min(last, int(end))
        at = found.spec.next_held(position, max(first, int(fragment.first_entry)))
        while at <= stop:
            yield at
            at = found.spec.next_held(position, at + 1)


def _missing(entry_id: int, reason: str, as_json: bool) -> None:
    if as_json:
        print_json({"entry": entry_id, "problem": reason})
    else:
        click.echo(f"entry {entry_id}: {reason}", err=True)
