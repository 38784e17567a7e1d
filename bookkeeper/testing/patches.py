"""Pieces of production code, replaced for a while: how bugs are planted to test the simulated worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

Patch = Callable[[Any, str, Any], None]
"""(owner, name, what to put there)"""

Replacements = Mapping[tuple[Any, str], Callable[..., Any]]
"""(Owner, name) -> what is there instead."""

_INHERITED: Final = object()


@contextmanager
def patches() -> Iterator[Patch]:
    """Whatever is replaced with the function that this gives is put back, in the opposite order, with the end of the
    block. What an owner inherited it inherits again."""
    kept: list[tuple[Any, str, Any]] = []

    def patch(owner: Any, name: str, value: Any) -> None:
        kept.append((owner, name, vars(owner).get(name, _INHERITED)))
        setattr(owner, name, value)

    try:
        yield patch
    finally:
        for owner, name, value in reversed(kept):
            if value is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


@contextmanager
def replaced(new: Replacements) -> Iterator[None]:
    """All of these are replaced until the end of the block."""
    with patches() as patch:
        for (owner, name), replacement in new.items():
            patch(owner, name, replacement)
        yield
