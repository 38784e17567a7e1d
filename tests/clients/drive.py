"""Files written by a client and read back by it, compared byte by byte."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

MB = 1 << 20
SIZES = (1, 1000, 128 * 1024, 128 * 1024 + 1, MB // 2, MB, 3 * MB, 16 * MB)
"""Around what is kept inside an edit, around what uvloop hands over at once, and large."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one file."""

    way: str
    """The client, and how it was asked to send."""
    size: int
    seconds: float
    """Of the upload."""
    error: str | None = None


class Way(Protocol):
    """One way in which one client sends and fetches files. Its connections are kept from file to file."""

    @property
    def name(self) -> str: ...

    def write(self, path: str, data: bytes) -> None: ...

    def read(self, path: str) -> bytes: ...


def contents(size: int, number: int) -> bytes:
    """Bytes that are nobody else's."""
    return random.Random(f"{size} {number}").randbytes(size)


def drive(way: Way, sizes: Iterable[int], rounds: int = 1) -> Iterator[Outcome]:
    """Write a file of each size, and read it back, ``rounds`` times."""
    for number in range(rounds):
        for size in sizes:
            path = f"/{re.sub('[^A-Za-z]+', '-', way.name)}/{size}-{number}"
            data = contents(size, number)
            began = time.monotonic()
            error = told(lambda: way.write(path, data))  # noqa: B023
            took = time.monotonic() - began
            if error is None:
                error = told(lambda: _compare(way.read(path), data))  # noqa: B023
            yield Outcome(way.name, size, took, error)


def told(act: Callable[[], object]) -> str | None:
    """What went wrong, in a line; None: nothing."""
    try:
        act()
    except Exception as error:  # whatever a client raises is what came of it
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return None


def _compare(read: bytes, data: bytes) -> None:
    if read != data:
        raise ValueError(f"{len(read)} bytes were read, and not those {len(data)} that were written")
