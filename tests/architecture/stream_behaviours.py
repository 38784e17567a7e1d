"""The table of behaviours in docs/streams.md: ``python -m tests.architecture.stream_behaviours`` fills its last column.

A test pins a behaviour by naming it at the beginning of a sentence of its docstring: ``SEG-41``. A cell that names a
test stays as long as that test exists; a cell without one gets the first test that names the behaviour.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.source import nodes

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "streams.md"
COUNT = 122

ROW = re.compile(r"^\| (SEG-\d{2,3}) \| (.+) \| (.*) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w/.]+\.py)::(\w+)`")
NAMED = re.compile(r"\bSEG-\d{2,3}\b")
ROOMS = (
    "retention", "transfer", "checks", "directory", "write", "read", "cursors", "gateway", "remote", "commands", "",
    "chain", "entries", "world", "protocol",
)  # fmt: skip


def rows() -> dict[str, str]:
    """Behaviour -> its test, or why it has none."""
    found = ROW.findall(PAGE.read_text())
    table = {name: cell for name, _, cell in found}
    assert len(table) == len(found), "a behaviour stands there twice"
    return table


def named() -> dict[str, list[str]]:
    """Behaviour -> the tests whose docstrings name it, the nearest to its code first."""
    found: dict[str, list[tuple[int, str]]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "SEG-" not in text:
            continue
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                place = path.relative_to(ROOT)
                for name in set(NAMED.findall(ast.get_docstring(node) or "")):
                    found.setdefault(name, []).append((_rank(place), f"`{place}::{node.name}`"))
    return {name: [test for _, test in sorted(tests)] for name, tests in found.items()}


def _rank(place: Path) -> int:
    room = place.parts[2] if len(place.parts) > 3 else ""
    return ROOMS.index(room) if place.parts[1] == "segments" and room in ROOMS else len(ROOMS)


def functions_of(path: Path) -> set[str]:
    """The functions of a module."""
    return {node.name for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def missing_tests(cell: str) -> list[str]:
    """The tests that a cell names and that do not exist."""
    return [
        f"{path}::{test}"
        for path, test in TEST.findall(cell)
        if not (ROOT / path).exists() or test not in functions_of(ROOT / path)
    ]


def fill() -> None:
    """Write the tests into the table."""
    tests = named()

    def line(row: re.Match[str]) -> str:
        name, text, cell = row.groups()
        known = tests.get(name, [])
        if known and (not TEST.search(cell) or missing_tests(cell)):
            cell = known[0]
        return f"| {name} | {text} | {cell} |"

    PAGE.write_text(ROW.sub(line, PAGE.read_text()))


if __name__ == "__main__":
    fill()
