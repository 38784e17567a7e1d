"""What the language makes easy and durable data forbid."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("bookkeeper/storage", "bookkeeper/bookie/identity", "bookkeeper/ledger", "journal_manager", "segments")


def hazards(source: str) -> list[str]:
    """Buffered files, mapped files and work of the garbage collector, in one module."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == "__del__":
            found.append("__del__")
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in ("open", "os.fdopen", "io.open") or (name == "mmap.mmap" and ast.unparse(node.args[0]) != "-1"):
                found.append(name)
    return found


@pytest.mark.rule("P1")
@pytest.mark.parametrize("room", ROOMS)
def test_durable_files_are_neither_buffered_nor_mapped(room: str) -> None:
    found = {path.name: hazards(path.read_text()) for path in (ROOT / room).rglob("*.py")}
    assert {name: what for name, what in found.items() if what} == {}


def test_hazards_are_found() -> None:
    assert hazards(
        "import mmap\nopen('x')\nmmap.mmap(f, 0)\nmmap.mmap(-1, 9)\nclass A:\n    def __del__(self): ..."
    ) == [
        "open",
        "mmap.mmap",
        "__del__",
    ]
