"""Modules do not import each other in a circle: neither for types nor inside of functions, which contracts omit."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.architecture.source import nodes

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bookkeeper", "journal_manager", "segments", "spark_wal", "pyspark_bookkeeper")


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """The modules that a module names anywhere, each with the name that it takes; "" for a module itself."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by dots"
            yield from ((node.module or "", alias.name) for alias in node.names)


def sources() -> dict[str, Path]:
    return {module_of(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def handed_on(files: Mapping[str, Path]) -> dict[tuple[str, str], str]:
    """(front door, a name of it) -> the module that the front door has it from."""
    doors = {name: path for name, path in files.items() if path.name == "__init__.py"}
    return {(door, name): home for door, path in doors.items() for home, name in imports(path) if name}


def arrows(files: Mapping[str, Path], homes: Mapping[tuple[str, str], str]) -> dict[str, set[str]]:
    """Module -> the modules whose definitions it takes. What a front door hands on is taken from its home."""
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        if path.name == "__init__.py":
            continue
        taken = found.setdefault(module, set())
        for source, name in imports(path):
            home = source
            if f"{source}.{name}" in files:
                home = f"{source}.{name}"
            while (home, name) in homes:
                home = homes[home, name]
            if home in files and home != module and files[home].name != "__init__.py":
                taken.add(home)
    return found


def circle_in(found: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@cache
def found_arrows() -> Mapping[str, set[str]]:
    files = sources()
    return arrows(files, handed_on(files))


def test_no_modules_import_each_other_in_a_circle() -> None:
    found = found_arrows()
    assert len(found) > 500 and "segments.position" in found["segments.errors"], "the imports were not read"
    assert circle_in(found) == []


def test_an_import_that_closes_a_circle_is_told() -> None:
    found = {module: set(taken) for module, taken in found_arrows().items()}
    assert "segments.chain.stream_segment" in found["segments.commands.shared"], "a front door was not passed"
    found["segments.position"].add("segments.errors")
    assert {"segments.position", "segments.errors"} == set(circle_in(found))
