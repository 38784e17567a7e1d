"""A module that says that it is pure, or a machine, reaches for no file, clock, die, socket or thread."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("bookkeeper", "journal_manager", "segments", "spark_wal")

_CLAIMS: Final = re.compile(r"\((a )?(pure|machine)\b|^Machine\b|\bPure[:.]|\bpure machine\b")
_REACHES: Final = frozenset(
    [
        "asyncio",
        "os",
        "pathlib",
        "random",
        "secrets",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
    ]
)


def claims_purity(source: str) -> bool:
    """Whether the module's docstring says so."""
    return bool(_CLAIMS.search(ast.get_docstring(ast.parse(source)) or ""))


def reaches(source: str) -> set[str]:
    """What it imports to run, of what a pure module has no use for."""
    found = set()
    tree = ast.parse(source)
    types_only = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and ast.unparse(test.test) == "TYPE_CHECKING"
        for node in ast.walk(test)
    }
    for node in (each for each in ast.walk(tree) if id(each) not in types_only):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        found |= {name.partition(".")[0] for name in names}
    return found & _REACHES


def test_who_says_pure_is() -> None:
    sources = {
        path.relative_to(ROOT): path.read_text()
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    claims = {path: source for path, source in sources.items() if claims_purity(source)}
    assert len(claims) > 30
    assert {path: found for path, source in claims.items() if (found := reaches(source))} == {}


def test_a_module_that_only_says_so_is_noticed() -> None:
    source = '"""Decides what goes (pure)."""\nfrom time import monotonic\nimport os.path\n'
    assert claims_purity(source)
    assert reaches(source) == {"time", "os"}
    assert not claims_purity('"""Shell: asks, and writes."""')
