"""``make interop``: run the matrix and print it. Exit status 0: every cell that can exist is green."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from examples.apache_servers import VERSION, whats_missing
from tests.interop.cells import CELLS, COLUMNS, ROWS, TOOLS, Cell, Tool
from tests.interop.clusters import Site, site
from tests.interop.document import PAGE, with_matrix

_TOLD_EVERY: Final = 12
"""Cells between two lines about progress where there is no terminal."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a cell: ``green``, ``red`` or ``n/a``."""

    cell: Cell | Tool
    colour: str
    seconds: float
    text: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cells that were asked for; by default all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", action="append", help="cells whose name contains this; see --list")
    parser.add_argument("--list", action="store_true", help="print the cells' names")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="logs and data go there, and stay")
    parser.add_argument("--document", action="store_true", help="write what came of all cells to docs/compatibility.md")
    options = parser.parse_args(arguments)
    if options.document and options.only:
        parser.error("--document is for a run of all cells")
    every: list[Cell | Tool] = [*CELLS, *TOOLS]
    chosen = [cell for cell in every if not options.only or any(text in str(cell) for text in options.only)]
    if options.list:
        sys.stdout.write("".join(f"{cell}\n" for cell in chosen))
        return 0
    console = Console(width=None if sys.stdout.isatty() else 170)
    if (missing := whats_missing()) is not None:
        console.print(f"interop: not run: {missing}")
        return 1
    if options.keep:
        return _run(chosen, options.keep, console, document=options.document)
    with tempfile.TemporaryDirectory(prefix="interop.") as directory:
        return _run(chosen, Path(directory), console, document=options.document)


def _run(chosen: Sequence[Cell | Tool], directory: Path, console: Console, *, document: bool) -> int:
    began = time.monotonic()
    directory.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=directory / "our-clients.log", format="%(asctime)s %(name)s: %(message)s")
    wanted = tuple(dict.fromkeys(cell.bookies for cell in chosen if cell.reason is None))
    console.print(f"starting ZooKeeper, and {', '.join(wanted)} bookies (Apache BookKeeper {VERSION})")
    results = []
    with site(directory, wanted) as running, console.status("") as status:
        console.print(f"they serve after {time.monotonic() - began:.0f} s; {len(chosen)} cells")
        for number, cell in enumerate(chosen, 1):
            status.update(f"{number}/{len(chosen)} {cell}")
            results.append(_one(cell, running))
            if results[-1].colour == "red":
                console.print(f"[red]red[/]: {cell}", highlight=False)
                console.print(results[-1].text, markup=False, highlight=False)
            elif not console.is_terminal and number % _TOLD_EVERY == 0:
                console.print(f"{number}/{len(chosen)}, after {time.monotonic() - began:.0f} s")
    if document:
        PAGE.write_text(with_matrix(PAGE.read_text(), {result.cell: result.colour for result in results}))
    return _report(results, time.monotonic() - began, console)


def _one(cell: Cell | Tool, running: Site) -> Result:
    if cell.reason is not None:
        return Result(cell, "n/a", 0.0, cell.reason)
    began = time.monotonic()
    try:
        cell.run(running)
    except Exception as error:
        text = "".join(traceback.format_exception(error, limit=-6))
        return Result(cell, "red", time.monotonic() - began, text)
    return Result(cell, "green", time.monotonic() - began)


def _report(results: Sequence[Result], seconds: float, console: Console) -> int:
    if matrix := [result for result in results if isinstance(result.cell, Cell)]:
        console.print(_table(matrix))
    if tools := [result for result in results if isinstance(result.cell, Tool)]:
        console.print(_tools(tools))
    for reason in dict.fromkeys(result.text for result in results if result.colour == "n/a"):
        console.print(f"n/a: {reason}", highlight=False)
    for result in results:
        if result.colour == "red":
            console.print(f"red: {result.cell}: {result.text.strip().splitlines()[-1]}", markup=False, highlight=False)
    counts = {colour: sum(result.colour == colour for result in results) for colour in ("green", "red", "n/a")}
    summary = ", ".join(f"{count} {colour}" for colour, count in counts.items())
    console.print(f"interop with Apache BookKeeper {VERSION}: {summary}, in {seconds:.0f} s", highlight=False)
    return 1 if counts["red"] else 0


def _table(results: Sequence[Result]) -> Table:
    """Rows are stories; columns are client, bookies and protocol."""
    table = Table(title=f"Our client and Java's, our bookies and Java's (Apache BookKeeper {VERSION}); seconds")
    table.add_column("client\nbookies\nprotocol", no_wrap=True)
    found = {(result.cell.row.name, result.cell.column): result for result in results if isinstance(result.cell, Cell)}
    columns = [column for column in COLUMNS if any(each == column for _, each in found)]
    for column in columns:
        table.add_column(f"{column.client}\n{column.bookies}\n{column.protocol}", justify="right", no_wrap=True)
    for row in ROWS:
        if any(name == row.name for name, _ in found):
            table.add_row(row.title, *(_mark(found.get((row.name, column))) for column in columns))
    return table


def _tools(results: Sequence[Result]) -> Table:
    """A row each."""
    table = Table(title="Programs of one language on bookies of the other; seconds")
    table.add_column("program", no_wrap=True)
    table.add_column("bookies")
    table.add_column("", justify="right", no_wrap=True)
    for result in results:
        assert isinstance(result.cell, Tool)
        table.add_row(result.cell.title, result.cell.bookies, _mark(result))
    return table


def _mark(result: Result | None) -> str:
    if result is None:
        return ""
    if result.colour == "n/a":
        return "[dim]n/a[/]"
    sign = "✔" if result.colour == "green" else "✘"
    return f"[{result.colour}]{sign} {result.seconds:.1f}[/]"


if __name__ == "__main__":
    sys.exit(main())
