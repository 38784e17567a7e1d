"""A module that says that it is pure, or a machine, reaches for no file, clock, die, socket or thread.

It stands in a contract of purity, too, so that the linter sees what it imports.
"""

from __future__ import annotations

import ast
import re
import tomllib
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


def room_claims_purity(source: str) -> bool:
    """Whether a room's docstring says it of the whole room: what follows its first line is about single modules."""
    doc = ast.get_docstring(ast.parse(source)) or ""
    return doc.partition("\n")[0].endswith("Pure.")


def in_contracts_of_purity() -> set[str]:
    """The modules and rooms that the contracts of purity keep from all that reaches outside."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {
        module
        for contract in contracts
        if _REACHES - {"shutil", "signal", "subprocess", "tempfile"} <= set(contract.get("forbidden_modules", ()))
        for module in contract["source_modules"]
    }


def covered(module: str, contracts: set[str]) -> bool:
    """Whether one of the contracts names the module or a room above it."""
    parts = module.split(".")
    return any(".".join(parts[:end]) in contracts for end in range(1, len(parts) + 1))


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


def test_who_says_pure_stands_in_a_contract_of_purity() -> None:
    contracts = in_contracts_of_purity()
    assert len(contracts) > 100
    outside = []
    for path in (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        says_so = room_claims_purity if path.name == "__init__.py" else claims_purity
        if says_so(path.read_text()) and not covered(module, contracts):
            outside.append(module)
    assert outside == []


def test_a_module_is_covered_by_its_own_name_and_by_its_room() -> None:
    contracts = {"bookkeeper.ledger", "segments.names"}
    assert covered("bookkeeper.ledger.write.writer", contracts)
    assert covered("segments.names", contracts)
    assert not covered("bookkeeper.ledgers", contracts)
    assert not covered("segments", contracts)


def test_what_a_room_says_of_one_module_is_no_claim_of_the_room() -> None:
    assert room_claims_purity('"""Who may do what. Pure."""')
    assert not room_claims_purity('"""Copies.\n\n``copies`` decides (pure).\n"""')


def test_a_module_that_only_says_so_is_noticed() -> None:
    source = '"""Decides what goes (pure)."""\nfrom time import monotonic\nimport os.path\n'
    assert claims_purity(source)
    assert reaches(source) == {"time", "os"}
    assert not claims_purity('"""Shell: asks, and writes."""')
