"""What the interfaces for threads take from the asynchronous ones is there, by the same name and with the same type."""

from __future__ import annotations

import inspect
import re
import sys
import typing
from typing import Any

import pytest

import bookkeeper.sync
import journal_manager.sync
import segments.sync
from bookkeeper.background_loop import Blocking, SharedAttribute

TWINS = [
    twin
    for module in (bookkeeper.sync, journal_manager.sync, segments.sync)
    for twin in (getattr(module, name) for name in module.__all__)
    if inspect.isclass(twin) and issubclass(twin, Blocking)
]


def original_of(twin: type) -> type:
    """The class that a class for threads stands for."""
    for base in twin.__orig_bases__ if "__orig_bases__" in vars(twin) else ():  # type: ignore[attr-defined]
        return typing.cast("type", typing.get_args(base)[0])
    return typing.cast("type", typing.get_type_hints(twin)["_original"])


def shown(twin: type) -> dict[str, Any]:
    """The attributes that a class for threads shows, with their types."""
    return {
        name: typing.get_args(found.__orig_class__)[0]  # type: ignore[attr-defined]
        for name, found in vars(twin).items()
        if isinstance(found, SharedAttribute)
    }


def type_of(original: type, name: str) -> Any:
    """The type of a property; None for an attribute that some __init__ sets."""
    for base in original.__mro__:
        found = vars(base).get(name)
        if isinstance(found, property) and found.fget is not None:
            return eval(found.fget.__annotations__["return"], vars(typing) | vars(sys.modules[base.__module__]))
        if "__init__" in vars(base) and re.search(rf"self\.{name}\b.* = ", inspect.getsource(base)):
            return None
    raise AttributeError(name)


def test_the_twins_are_found() -> None:
    assert len(TWINS) == 15


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: f"{twin.__module__}.{twin.__name__}")
def test_what_is_shown_has_the_type_of_the_original(twin: type) -> None:
    for name, promised in shown(twin).items():
        assert type_of(original_of(twin), name) in (None, promised)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: f"{twin.__module__}.{twin.__name__}")
def test_a_method_that_crosses_over_keeps_its_name_and_parameters(twin: type) -> None:
    original = original_of(twin)
    for name, method in vars(twin).items():
        wrapped = getattr(method, "__wrapped__", None)
        if wrapped is None or not inspect.isfunction(method) or name == "create_ledger":
            continue
        assert name.removesuffix("_nowait") == wrapped.__name__
        assert inspect.signature(method) == inspect.signature(getattr(original, wrapped.__name__))
        assert method.__doc__
