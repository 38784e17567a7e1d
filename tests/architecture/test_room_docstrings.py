"""The docstring of a room lists its modules; it names none that is not there."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("bookkeeper", "journal_manager", "segments", "spark_wal")

_ROW = re.compile(r"^ *((?:[a-z]\w*, )*[a-z]+_\w+(?:, [a-z]\w*)*)(?:  +\S.*)?$")
"""A row of such a list: names, at least one of two words, and what they are, or nothing more on this line."""


def absent(docstring: str, there: Collection[str]) -> Iterator[str]:
    """The names in the rows of a docstring that nothing there has."""
    for line in docstring.splitlines():
        if row := _ROW.match(line):
            yield from (name for name in row[1].split(", ") if name not in there)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_room_names_no_module_that_is_not_there(package: str) -> None:
    wrong: dict[str, list[str]] = {}
    for door in sorted((ROOT / package).rglob("__init__.py")):
        there = {path.stem for path in door.parent.iterdir()}
        names = list(absent(ast.get_docstring(ast.parse(door.read_text())) or "", there))
        if names:
            wrong[str(door.relative_to(ROOT))] = names
    assert wrong == {}, "a module was renamed or is gone: change the docstring of its room"


def test_a_name_that_is_not_there_is_found() -> None:
    docstring = """A room.

chain_node      the node
    owned_node, orphans
                two more
A sentence that has a snake_case word in it.
"""
    assert list(absent(docstring, {"chain_node", "owned_node", "orphans"})) == []
    assert list(absent(docstring, {"chain_node"})) == ["owned_node", "orphans"]
    assert list(absent(docstring, {"owned_node", "orphans"})) == ["chain_node"]
