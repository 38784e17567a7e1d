"""A module that is opened is read to its end, and a function in one breath: neither is longer than a limit.

Lines are counted as an editor shows them: with docstrings, comments and blank lines.
The names in `LONGER` are older than the limit: whoever divides one takes its name out, and none is added.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

from tests.architecture.source import nodes

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = (
    "bookkeeper",
    "journal_manager",
    "segments",
    "spark_wal",
    "pyspark_bookkeeper",
    "examples",
    "benchmarks",
)
GENERATED: Final = ("_pb2.py", "_pb2.pyi")

MODULE_LINES: Final = 500
FUNCTION_LINES: Final = 60

LONGER: Final = {
    "bookkeeper/codec/native/adds.py": 884,
    "bookkeeper/codec/native/adds.py walk": 64,
    "bookkeeper/codec/native/reads.py": 573,
    "bookkeeper/codec/native/records.py": 529,
    "bookkeeper/codec/pure/adds.py split_adds": 71,
    "examples/namenode_sim/namespace.py": 584,
}
"""Module, or module and function -> the lines that it may have: never more, and fewer each time that it shrinks."""


def modules() -> list[Path]:
    """Every module that people write, with Cython's."""
    found = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py*")))
    return [path for path in found if path.suffix in {".py", ".pyx"} and not path.name.endswith(GENERATED)]


def lines_of(path: Path) -> dict[str, int]:
    """The lines of the module and of each of its functions, by `path` and by `path name`."""
    place = str(path.relative_to(ROOT))
    lines = {place: len(path.read_text().splitlines())}
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{place} {node.name}"
            lines[name] = max(lines.get(name, 0), (node.end_lineno or node.lineno) - node.lineno + 1)
    return lines


def too_long(lines: dict[str, int]) -> dict[str, int]:
    """What is at its limit or above it, or above what an exception grants."""
    limits = {name: LONGER.get(name, FUNCTION_LINES if " " in name else MODULE_LINES - 1) for name in lines}
    return {name: count for name, count in lines.items() if count > limits[name]}


def test_no_module_reaches_500_lines_and_no_function_has_more_than_60() -> None:
    found = [path for path in modules() if "_pb2" not in path.name]
    assert len(found) > 900
    assert {name: count for path in found for name, count in too_long(lines_of(path)).items()} == {}


def test_the_list_of_exceptions_only_shrinks() -> None:
    """What was divided is no exception any more, and what became shorter has the shorter limit."""
    lines = {name: count for path in modules() for name, count in lines_of(path).items()}
    assert {name: lines.get(name, 0) for name in LONGER} == LONGER


def test_one_line_too_many_is_noticed() -> None:
    assert too_long({"a.py": 499, "a.py f": 60}) == {}
    assert too_long({"a.py": 500, "b.py f": 61}) == {"a.py": 500, "b.py f": 61}
