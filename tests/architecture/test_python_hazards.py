"""What the language makes easy and durable data forbid."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.architecture.source import nodes

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("bookkeeper/storage", "bookkeeper/bookie/identity", "bookkeeper/ledger", "journal_manager", "segments")


def hazards(nodes: Iterable[ast.AST]) -> list[str]:
    """Buffered files, mapped files and work of the garbage collector, in one module."""
    found = []
    for node in nodes:
        match node:
            case ast.FunctionDef("__del__"):
                found.append("__del__")
            case ast.Call(ast.Name("open")):
                found.append("open")
            case ast.Call(ast.Attribute(ast.Name("os"), "fdopen") | ast.Attribute(ast.Name("io"), "open")):
                found.append(ast.unparse(node.func))
            case ast.Call(ast.Attribute(ast.Name("mmap"), "mmap"), [place, *_]) if ast.unparse(place) != "-1":
                found.append("mmap.mmap")
    return found


@pytest.mark.rule("P1")
@pytest.mark.parametrize("room", ROOMS)
def test_durable_files_are_neither_buffered_nor_mapped(room: str) -> None:
    found = {path.name: hazards(nodes(path)) for path in (ROOT / room).rglob("*.py")}
    assert {name: what for name, what in found.items() if what} == {}


def test_hazards_are_found() -> None:
    source = "import mmap\nopen('x')\nmmap.mmap(f, 0)\nmmap.mmap(-1, 9)\nclass A:\n    def __del__(self): ..."
    assert hazards(ast.walk(ast.parse(source))) == ["open", "mmap.mmap", "__del__"]
    assert hazards(ast.walk(ast.parse("os.fdopen(3)\nio.open('x')\nos.open('x')"))) == ["os.fdopen", "io.open"]
