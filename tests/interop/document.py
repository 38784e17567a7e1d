"""The matrix as a part of docs/compatibility.md: ``python -m tests.interop --document``, after a run of all cells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from examples.apache_servers import VERSION
from tests.interop.cells import COLUMNS, ROWS, TOOLS, Cell, Tool

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
_BLOCK: Final = re.compile(r"(<!-- matrix:begin[^\n]*-->\n).*(<!-- matrix:end -->)", re.DOTALL)
_SIGNS: Final = {"green": "✔", "red": "✘", "n/a": "–"}


def with_matrix(page: str, colours: Mapping[Cell | Tool, str]) -> str:
    """The page with what came of every cell and tool; colours are ``green``, ``red`` and ``n/a``.

    Raises:
        ValueError: the page has no such place, or a cell is missing.
    """
    if len(_BLOCK.findall(page)) != 1:
        raise ValueError("the page has no place for the matrix")
    block = "\n".join([*_intro(colours), "", *_matrix(colours), "", *_reasons(colours), "", *_tools(colours), ""])
    return _BLOCK.sub(lambda found: f"{found[1]}{block}{found[2]}", page)


def _intro(colours: Mapping[Cell | Tool, str]) -> list[str]:
    counts = {colour: list(colours.values()).count(colour) for colour in _SIGNS}
    return [
        f"`make interop` runs our client and Java's ({VERSION}), each on our bookies, on Java's, and on ensembles of "
        "both, over v3 and v2. Each cell is a run with real processes and a real ZooKeeper: what one language writes "
        "the other reads, fences, recovers. "
        f"{counts['green']} green, {counts['red']} red, {counts['n/a']} that cannot exist (–)."
    ]


def _matrix(colours: Mapping[Cell | Tool, str]) -> list[str]:
    found = {(cell.row.name, cell.column): colour for cell, colour in colours.items() if isinstance(cell, Cell)}
    heads = [f"{column.client}, {column.bookies}, {column.protocol}" for column in COLUMNS]
    lines = [_line(["client, bookies, protocol", *heads]), _line(["---", *([":-:"] * len(COLUMNS))])]
    for row in ROWS:
        try:
            lines.append(_line([row.title, *(_SIGNS[found[row.name, column]] for column in COLUMNS)]))
        except KeyError as error:
            raise ValueError(f"{row.title}: not every cell has been run") from error
    return lines


def _reasons(colours: Mapping[Cell | Tool, str]) -> list[str]:
    reasons = {cell.row.title: cell.reason for cell in colours if isinstance(cell, Cell) and cell.reason is not None}
    return ["What cannot exist: " + "; ".join(f"*{title}*: {reason}" for title, reason in reasons.items()) + "."]


def _tools(colours: Mapping[Cell | Tool, str]) -> list[str]:
    found = {str(tool): colour for tool, colour in colours.items() if isinstance(tool, Tool)}
    lines = [_line(["program", "bookies", ""]), _line(["---", "---", ":-:"])]
    for tool in TOOLS:
        if str(tool) not in found:
            raise ValueError(f"{tool.title}: has not been run")
        lines.append(_line([tool.title, tool.bookies, _SIGNS[found[str(tool)]]]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
