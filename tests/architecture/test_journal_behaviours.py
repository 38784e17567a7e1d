"""The table of HDFS's behaviours in docs/journals.md: each has a test that exists, or a reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.source import nodes

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "journals.md"
FAMILIES = {
    "FMT": 16, "SEG": 21, "REC": 17, "SEL": 20, "OP": 12, "BUF": 4, "BKS": 5, "LOG": 11, "SET": 13, "FJ": 6,
    "HA": 23, "CKP": 7, "RET": 12, "EPO": 10, "PLG": 5, "BKF": 6,
}  # fmt: skip
"""Behaviours of each family; 188 altogether."""

ROW = re.compile(r"^\| ([A-Z]+-\d\d) \| (.+) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w/.]+\.py)::(\w+)`")


def rows() -> dict[str, str]:
    """Behaviour -> its test, or why it has none."""
    found = ROW.findall(PAGE.read_text())
    table = {name: cell for name, _, cell in found}
    assert len(table) == len(found), "a behaviour stands there twice"
    return table


def functions_of(path: Path) -> set[str]:
    return {node.name for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_behaviour_is_there() -> None:
    expected = {f"{family}-{number:02d}" for family, count in FAMILIES.items() for number in range(1, count + 1)}
    assert len(expected) == 188
    assert set(rows()) == expected


def test_every_test_that_is_named_exists() -> None:
    missing = []
    for name, cell in rows().items():
        for path, test in TEST.findall(cell):
            file = ROOT / path
            if not file.exists() or test not in functions_of(file):
                missing.append(f"{name}: {path}::{test}")
    assert missing == []


def test_a_behaviour_without_a_test_has_a_reason() -> None:
    for name, cell in rows().items():
        if not TEST.search(cell):
            kind, _, reason = cell.partition(": ")
            assert cell == "to come" or (kind in ("no test", "the next piece") and len(reason) > 10), (name, cell)
