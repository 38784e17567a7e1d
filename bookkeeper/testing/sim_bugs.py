"""Bugs planted to test the simulator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

BUGS: dict[str, Callable[[], None]] = {}


@contextlib.contextmanager
def planted(name: str | None) -> Iterator[None]:
    yield
