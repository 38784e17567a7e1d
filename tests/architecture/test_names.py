"""One meaning per name: a class name stands for one thing in all packages, benchmarks and examples."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.architecture.source import parsed

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bookkeeper", "journal_manager", "segments", "spark_wal", "benchmarks", "examples")
BLOCKING_TWINS = ("bookkeeper/sync.py", "journal_manager/sync.py", "segments/read/blocking.py", "segments/sync.py")
"""The same client, the same edit log, and the same streams, for threads, by the same names."""


def public_classes() -> dict[str, list[str]]:
    """Class name -> the modules that define it, the blocking twins aside."""
    found: dict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = str(path.relative_to(ROOT))
            if module in BLOCKING_TWINS or path.stem.endswith("_pb2"):
                continue
            for node in parsed(path).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(module)
    return found


def test_a_class_name_has_one_meaning() -> None:
    found = public_classes()
    assert len(found) > 400, "the packages were not found"
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}
