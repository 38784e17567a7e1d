"""The tree as Python reads it, each module once for all tests that look at it. Nobody changes what is returned."""

from __future__ import annotations

import ast
import gc
import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

COMPILED_ONLY = "is imported as a compiled extension only"
"""What a module of a compiled codec says where it was not built; the codec in Python has the same names."""


@cache
def parsed(path: Path) -> ast.Module:
    """A module's syntax."""
    with _no_collection():
        return ast.parse(path.read_text())


def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module's syntax, from the outside to the inside."""
    return walked(parsed(path))


@cache
def walked(tree: ast.AST) -> tuple[ast.AST, ...]:
    """The same of a part of it."""
    with _no_collection():
        return tuple(ast.walk(tree))


def names_in(module: str) -> Mapping[str, Any]:
    """What a module has when it is imported; nothing of a compiled codec that was not built."""
    try:
        return vars(importlib.import_module(module))
    except ImportError as error:
        if COMPILED_ONLY in str(error):
            return {}
        raise


@cache
def _swept() -> None:
    """Once: what is garbage by now is not kept with them."""
    gc.collect()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Trees are all kept, and large: collections that look at them again and again take longer than making them."""
    _swept()
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was:
            gc.enable()
