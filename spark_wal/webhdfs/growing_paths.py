"""Which paths are those of files that grow: of logs that are read while they are written. A machine.

A pattern is made of names between slashes. In a name ``*`` stands for any characters and ``?`` for one; the name ``**``
stands for any number of names (at the end: for at least one). A pattern that begins with a slash begins at the root,
any other one at any directory: ``*.inprogress`` is such a file anywhere, ``eventlog_v2_*/**`` everything below such a
directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_ANY_NAMES: Final = "**"


class GrowingPaths:
    """The patterns of one gateway."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """The patterns are good ones: see :func:`problem_of`."""
        self._patterns = [re.compile(_expression(pattern), re.DOTALL) for pattern in patterns]

    def holds(self, path: str) -> bool:
        """Whether a file at this path grows."""
        return any(pattern.fullmatch(path) is not None for pattern in self._patterns)


def problem_of(pattern: str) -> str | None:
    """Why this is no pattern; None if it is one."""
    names = pattern.removeprefix("/").split("/")
    if not all(names):
        return f"the pattern {pattern!r} has an empty name in it"
    if any(_ANY_NAMES in name and name != _ANY_NAMES for name in names):
        return f"in the pattern {pattern!r} a ** is not a name of its own"
    if names == [_ANY_NAMES]:
        return f"the pattern {pattern!r} would make every file one that grows"
    return None


def _expression(pattern: str) -> str:
    start = "/" if pattern.startswith("/") else "/(?:.*/)?"
    names = pattern.removeprefix("/").split("/")
    parts = [("(?:[^/]+/)*" if name == _ANY_NAMES else f"{_name(name)}/") for name in names[:-1]]
    last = ".+" if names[-1] == _ANY_NAMES else _name(names[-1])
    return f"{start}{''.join(parts)}{last}"


def _name(name: str) -> str:
    return "".join({"*": "[^/]*", "?": "[^/]"}.get(each, re.escape(each)) for each in name)
