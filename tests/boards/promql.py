"""Which metrics a query of Prometheus names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_WORDS: Final = {
    "and",
    "or",
    "unless",
    "bool",
    "by",
    "without",
    "on",
    "ignoring",
    "offset",
    "group_left",
    "group_right",
}
_BY_NAME: Final = re.compile(r'__name__\s*=~\s*"([^"]+)"')
_SELECTOR: Final = re.compile(r"\{(?:[^{}\"]|\"[^\"]*\")*\}")
_GROUPING: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\b(?!\s*\()")


@dataclass(frozen=True, slots=True)
class Named:
    """What a query asks for."""

    names: frozenset[str]
    patterns: frozenset[str]
    """Regular expressions for names."""


def named(query: str) -> Named:
    """The metrics of a query."""
    patterns = frozenset(_BY_NAME.findall(query))
    left = re.sub(r"\[[^\]]*\]", " ", _SELECTOR.sub(" ", query))
    left = re.sub(r'"[^"]*"', " ", _GROUPING.sub(" ", left))
    left = re.sub(r"(?<![a-zA-Z_:])\d[\w.]*", " ", left)  # numbers and times
    return Named(frozenset(_NAME.findall(left)) - _WORDS, patterns)
