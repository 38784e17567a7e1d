"""Rule -> tests: ``python -m tests.architecture.rules`` prints the table.

The numbered rules are the project's promises. A test says which of them it guards with
``@pytest.mark.rule("W1", ...)``; this reads the marks from the source, so that it needs no run.
Comments, strings and pages cite the numbers: :func:`cited` finds where.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.architecture.source import nodes, parsed

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SHIPPED = ROOT / "journal_manager" / "testing"
"""Tests that are part of a package: the contract of journal backends."""
RULES = ROOT / "docs" / "rules.md"

PACKAGES = ("bookkeeper", "journal_manager", "segments", "spark_wal", "examples", "benchmarks", "tests")
PAGES = ("*.md", "docs/**/*.md", "changes/*.md", "tests/**/*.toml", "tests/simulation/seeds.txt")

NUMBER = re.compile(r"(?<![\w.%\\&#/-])[A-Z]\d{1,2}[a-z]?(?![\w/-]|\.\d)")
IMPURE = frozenset(["asyncio", "click", "logging", "os", "pathlib", "socket", "ssl", "threading"])

OTHERS = frozenset(["V2", "V3", "S3"])
"""What looks like a rule's number and is a name: the wire's dialects, a store of files."""


@functools.cache
def kept() -> dict[str, str]:
    """Rule -> what it says, from docs/rules.md: the rules that this version promises."""
    return dict(re.findall(r"^- \*\*([A-Z]\d+[a-z]?)\*\* (.*)$", RULES.read_text(), flags=re.MULTILINE))


@functools.cache
def guarded() -> dict[str, list[str]]:
    """Rule -> the tests that name it, as path::name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in (*sorted(TESTS.rglob("*.py")), *sorted(SHIPPED.glob("*.py"))):
        for rule, test in _marks(path):
            found[rule].append(f"{path.relative_to(ROOT if path.parent == SHIPPED else TESTS)}::{test}")
    return found


def cited(wanted: Callable[[str], bool]) -> dict[str, list[str]]:
    """Of the numbers that are wanted: each -> where comments, strings and pages name it, as path:line."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, line, text in _texts(wanted):
        for number in NUMBER.findall(text):
            if wanted(number):
                found[number].append(f"{path.relative_to(ROOT)}:{line}")
    return found


@functools.cache
def numbers_in(path: Path) -> frozenset[str]:
    """What looks like a rule's number anywhere in a module, in its code, too."""
    return frozenset(NUMBER.findall(path.read_text())) - OTHERS


def _texts(wanted: Callable[[str], bool]) -> Iterator[tuple[Path, int, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not path.stem.endswith("_pb2") and any(map(wanted, numbers_in(path))):
                yield from ((path, line, text) for line, text in texts_of(path))
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            for at, line in enumerate(path.read_text().splitlines(), 1):
                yield path, at, line


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and strings of a module, by line. It takes long: ask for :func:`numbers_in` first."""
    with path.open("rb") as source:
        for token in tokenize.tokenize(source.readline):
            if tokenize.tok_name[token.type] in ("COMMENT", "STRING", "FSTRING_MIDDLE"):
                yield token.start[0], token.string


def is_pure(path: Path) -> bool:
    """A machine, a codec or data: waits for nothing, logs nothing, and touches neither the system nor a console."""
    for node in nodes(path):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            return False
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if IMPURE & {name.partition(".")[0] for name in names}:
            return False
    return True


def _marks(path: Path) -> Iterator[tuple[str, str]]:
    if ".rule(" not in path.read_text():
        return
    module = parsed(path)
    for node in [
        *module.body,
        *(inner for outer in module.body if isinstance(outer, ast.ClassDef) for inner in outer.body),
    ]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from ((rule, node.name) for rule in _rules_of(decorator))
        elif isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "pytestmark" for t in node.targets):
            marks = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            for mark in marks:
                yield from ((rule, path.stem) for rule in _rules_of(mark))


def _rules_of(node: ast.expr) -> list[str]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "rule":
        return []
    if ast.unparse(node.func).endswith("mark.rule"):
        return [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return []


def main() -> int:
    found, rules = guarded(), kept()
    missing = [rule for rule in rules if rule not in found]
    for rule, text in rules.items():
        tests = found.get(rule, [])
        print(f"{rule:5} {text}")
        for test in tests or ["-- no test --"]:
            print(f"        {test}")
    print(
        f"{len(rules) - len(missing)} of {len(rules)} rules have a test"
        + (f"; none: {', '.join(missing)}" if missing else "")
    )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
