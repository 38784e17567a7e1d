"""Nobody reads what a library keeps to itself, also not in a class that is derived from the library's.

Two ways to do it: with an underscored name that no class, function or module of ours makes; and, where a library's
class is derived from, with one that hides or replaces the library's own. What a library keeps to itself it changes
when it pleases, and means something else by it than what is seen: an upload was reset because a waiter of aiohttp's
that was done was taken for one that still waits.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source import names_in, parsed, walked

ROOT = Path(__file__).parents[2]
PACKAGES = ("bookkeeper", "journal_manager", "segments", "spark_wal")
FILES = [
    path.relative_to(ROOT)
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if not path.name.endswith(("_pb2.py", "__main__.py"))  # generated; what runs when it is looked at
]

PUBLIC_ALL_THE_SAME = {
    "_replace": "of a named tuple; the underscore keeps it apart from fields",
    "_asdict": "the same",
    "_exit": "os._exit, documented",
}

LEFT = {
    "bookkeeper.testing.world.loop": "the simulator's loop is one of asyncio's, whose parts have no public names",
}
"""Modules that may all the same, and why."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def made_in(tree: ast.AST) -> Set[str]:
    """Underscored names that are made here: functions, classes, variables, attributes of oneself, slots."""
    made: set[str] = set()
    for node in walked(tree):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                made.add(name)
            case ast.Name(name, ast.Store()):
                made.add(name)
            case ast.Attribute(ast.Name("self" | "cls"), name, ast.Store()):
                made.add(name)
            case ast.Assign([ast.Name("__slots__")], value):
                made |= {str(part.value) for part in ast.walk(value) if isinstance(part, ast.Constant)}
            case _:
                pass
    return {name for name in made if is_private(name)}


@cache
def read_in(tree: ast.AST, *, own: bool) -> Mapping[str, int]:
    """Underscored attributes that are read here, of oneself (``self``, ``cls``, ``super()``) or of others."""
    return {
        node.attr: node.lineno
        for node in walked(tree)
        if isinstance(node, ast.Attribute) and is_private(node.attr) and is_oneself(node.value) == own
    }


def is_oneself(node: ast.expr) -> bool:
    match node:
        case ast.Name("self" | "cls") | ast.Call(ast.Name("super"), [], []):
            return True
        case _:
            return False


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of ours."""
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__"): parsed(ROOT / path) for path in FILES}


@cache
def written(file: str) -> dict[str, ast.ClassDef]:
    """The classes of a file, by their qualified names."""
    found: dict[str, ast.ClassDef] = {}

    def look(node: ast.AST, within: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                found[within + child.name] = child
                look(child, f"{within}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                look(child, f"{within}{child.name}.<locals>.")
            else:
                look(child, within)

    look(parsed(Path(file)), "")
    return found


@cache
def tree_of(kind: type) -> ast.AST:
    """The class as it is written down; nothing of one that is written in C."""
    try:
        file = inspect.getsourcefile(sys.modules[kind.__module__])
    except (TypeError, KeyError):
        file = None
    return ast.Module([], []) if file is None else written(file).get(kind.__qualname__, ast.Module([], []))


def is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in PACKAGES


def classes() -> Iterator[type]:
    """Of ours."""
    for name in trees():
        if name in LEFT:
            continue
        for found in names_in(name).values():
            if inspect.isclass(found) and found.__module__ == name:
                yield found


def strange_in(kind: type) -> Set[str]:
    """Underscored names that ``kind`` reads of itself, and that neither it nor a class of ours above it makes."""
    made = set().union(*(made_in(tree_of(base)) for base in kind.__mro__ if is_ours(base)))
    made |= {name for base in kind.__mro__ if is_ours(base) for name in vars(base)}
    return read_in(tree_of(kind), own=True).keys() - made - PUBLIC_ALL_THE_SAME.keys()


def taken_by(kind: type) -> Iterator[str]:
    """What ``kind`` makes or reads of itself that a library's class above it keeps to itself."""
    used = made_in(tree_of(kind)) | read_in(tree_of(kind), own=True).keys()
    for base in kind.__mro__:
        if not is_ours(base) and base.__module__ not in ("builtins", "typing", "abc", "enum"):
            theirs = made_in(tree_of(base)) | {name for name in vars(base) if is_private(name)}
            for name in sorted(used & theirs - PUBLIC_ALL_THE_SAME.keys() - {"_abc_impl"}):
                yield f"{name} of {base.__module__}.{base.__qualname__}"


def test_a_class_reads_no_underscored_name_of_itself_that_no_class_of_ours_makes() -> None:
    found = [f"{kind.__module__}.{kind.__qualname__}: {name}" for kind in classes() for name in strange_in(kind)]
    assert sorted(found) == []


def test_a_class_has_no_underscored_name_that_the_librarys_class_above_it_has() -> None:
    found = [f"{kind.__module__}.{kind.__qualname__}: {name}" for kind in classes() for name in taken_by(kind)]
    assert sorted(found) == []


def test_underscored_names_of_others_are_made_by_us() -> None:
    made = set().union(*(made_in(tree) for tree in trees().values())) | PUBLIC_ALL_THE_SAME.keys()
    found = [
        f"{module}:{line} {name}"
        for module, tree in trees().items()
        if module not in LEFT
        for name, line in read_in(tree, own=False).items()
        if name not in made
    ]
    assert found == []


class OfALibrary:
    """Stands for one: these tests are none of the packages that are looked at."""

    def __init__(self) -> None:
        self._waiter = None


def test_this_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ours(OfALibrary):
        def is_waiting(self) -> bool:
            return self._waiter is not None

    tree_of(Ours)
    monkeypatch.setattr(Ours, "__module__", "spark_wal.made_up")
    assert strange_in(Ours) == {"_waiter"}
    assert [name.split(" ")[0] for name in taken_by(Ours)] == ["_waiter"]
