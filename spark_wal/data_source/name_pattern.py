"""What to say where a pattern of names matches no stream: pure."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

from bookkeeper.amounts import counted

_SHOWN: Final = 3
"""So many names are shown; a cluster may have a hundred thousand."""


def no_match(pattern: str, names: Sequence[str]) -> str:
    """The sentence for ``pattern``, a prefix with a star, in a cluster that has these names, sorted."""
    said = f"streams {pattern} matches no stream; nothing was read"
    if not names:
        return f"{said}. The cluster has no stream at all: is the option metadata that of another cluster?"
    prefix = pattern.removesuffix("*")
    if near := _near(prefix, names):
        return f"{said}. Did you mean {_listed(near)}?"
    return f"{said}. The cluster has {counted(len(names), 'stream')}: {_listed(names)}"


def _near(prefix: str, names: Sequence[str]) -> list[str]:
    """The names that begin with almost the prefix, the nearest beginnings first. Up to its last slash a name is
    compared part by part, so that one letter too many is one letter."""
    *folders, last = prefix.casefold().split("/")
    begins: dict[str, list[str]] = {}
    for name in names:
        parts = name.casefold().split("/", len(folders))
        parts[len(folders) :] = [part[: len(last)] for part in parts[len(folders) :]]
        begins.setdefault("/".join(parts), []).append(name)
    found = difflib.get_close_matches(prefix.casefold(), list(begins), _SHOWN)
    return [name for begin in found for name in begins[begin]]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} …" if len(names) > _SHOWN else shown
