"""Rule -> tests: ``python -m tests.architecture.rules`` prints the table.

The numbered rules are the project's promises. A test says which of them it guards with
``@pytest.mark.rule("W1", ...)``; this reads the marks from the source, so that it needs no run.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def _numbers(prefix: str, *numbers: int | str) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in numbers)


KEPT: tuple[str, ...] = (
    *_numbers("Q", *range(1, 6)),
    *_numbers("W", *range(1, 10), "10b", 12),
    *_numbers("R", *range(1, 16)),
    *_numbers("L", *range(1, 10)),
    *_numbers("M", *range(1, 10)),
    *_numbers("Z", 1, 2, 3, 4, 5, 6, 7, 12, 13, 14),
    *_numbers("B", *range(1, 9), 10, 11, 13),
    *_numbers("K", *range(1, 4), *range(5, 24), *range(25, 29), 31),
    *_numbers("G", 1, 4),
    *_numbers("C", *range(1, 6), 7, 8),
    *_numbers("S", *range(1, 5), 9),
    *_numbers("V", 1, 2, 5, 7, 8),
)
"""Rules this version promises. The others come with re-replication, compaction and scrubbing."""


def guarded() -> dict[str, list[str]]:
    """Rule -> the tests that name it, as path::name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("*.py")):
        for rule, test in _marks(path):
            found[rule].append(f"{path.relative_to(TESTS)}::{test}")
    return found


def _marks(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from ((rule, node.name) for rule in _rules_of(decorator))
        elif isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "pytestmark" for t in node.targets):
            marks = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else [node.value]
            for mark in marks:
                yield from ((rule, path.stem) for rule in _rules_of(mark))


def _rules_of(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.rule"):
        return [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return []


def main() -> int:
    found = guarded()
    missing = [rule for rule in KEPT if rule not in found]
    for rule in KEPT:
        tests = found.get(rule, [])
        print(f"{rule:5} {len(tests):3}  {tests[0] if tests else '-- no test --'}")
    print(
        f"{len(KEPT) - len(missing)} of {len(KEPT)} rules have a test"
        + (f"; none: {', '.join(missing)}" if missing else "")
    )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
