"""What people read counts its nouns by ``counted``: nothing says "1 ledgers"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.architecture.source import nodes

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bookkeeper", "journal_manager", "segments", "spark_wal", "pyspark_bookkeeper", "examples")
NOUNS = (
    "batches|bookies|checkpoints|connections|cursors|directories|edits|entries|files|gateways|journals|ledgers|lines|"
    "partitions|producers|racks|ranges|records|rows|segments|snapshots|streams|tokens"
)
AFTER_A_VALUE = re.compile(rf" (?:(?:closed|deleted|distinct|more|newest|separate|suspect) )?(?:{NOUNS})\b")
OF_THE_LOG = re.compile(rf"%d (?:(?:closed|deleted|more|suspect) )?(?:{NOUNS})\b")
A_CONSTANT = re.compile(r"(\w+\.)*_?[A-Z][A-Z0-9_]+( [-+] 1)?")
"""A limit that the source names: it is never 1."""


def found_in(tree: Iterable[ast.AST]) -> list[str]:
    """The texts of a module that put a number before a noun by themselves, as line: what."""
    tree = list(tree)
    left_out = {id(node) for outer in tree if _is_for_developers(outer) for node in ast.walk(outer)}
    return [f"{line}: {what}" for node in tree if id(node) not in left_out for line, what in _of(node)]


def _is_for_developers(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name == "__repr__"
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "check"


def _of(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if (match := OF_THE_LOG.search(node.value)) is not None:
            yield node.lineno, match[0]
    elif isinstance(node, ast.JoinedStr):
        for value, text in zip(node.values, node.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            match, said = AFTER_A_VALUE.match(str(text.value)), ast.unparse(value.value)
            if match is not None and A_CONSTANT.fullmatch(said) is None and not said.startswith("counted("):
                yield node.lineno, f"{{{said}}}{match[0]}"


def modules() -> list[Path]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in paths if "codec" not in path.relative_to(ROOT).parts]  # whose errors are for its callers


def test_counts_in_texts_agree_with_their_nouns() -> None:
    found = [f"{path.relative_to(ROOT)}:{each}" for path in modules() for each in found_in(nodes(path))]
    assert not found, "bookkeeper.amounts.counted writes these:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('f"{count} ledgers were checked"', 1),
        ('f"{a} of {len(b)} deleted ledgers"', 1),
        ('log.info("%d entries of %s", n, who)', 1),
        ("f\"{counted(count, 'ledger')} here\"", 0),
        ('f"at most {ROWS_MAX} rows"', 0),
        ('f"{path} holds {what}"', 0),
        ('check(a, "P12", f"{count} ledgers")', 0),
    ],
)
def test_what_is_looked_for_is_found(line: str, found: int) -> None:
    assert len(found_in(ast.walk(ast.parse(line)))) == found
