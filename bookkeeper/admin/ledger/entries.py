"""``bk ledger entries``: which entries of a ledger its bookies hold, and which they lack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bookkeeper.admin.shared import (
    VerbAnswer,
    counted,
    json_option,
    ledger_argument,
    metadata_option,
    on_cluster,
    print_table,
)
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.client.operators import Operator

_RUNS_SHOWN = 8


@click.command()
@metadata_option
@json_option
@ledger_argument
@click.option(
    "--bookie", "names", multiple=True, metavar="ID", help="Ask this bookie.  [default: all that should hold some]"
)
@on_cluster()
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
    return runs if len(runs) <= _RUNS_SHOWN else [*runs[:_RUNS_SHOWN], f"and {len(runs) - _RUNS_SHOWN} runs more"]
