"""Decides how appends become runs: where a run ends, and when one append is sent without waiting for others.

The appends of one turn of the loop become one run, or several of limited size. Each run is encoded and sent once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

RUN_BYTES: Final = 96 * 1024
"""A run ends when it has so many payload bytes: larger buffers come from the system and go back to it each time,
which costs more than a longer run saves."""

RUN_ENTRIES: Final = 2048
"""A run of tiny entries ends when it has so many."""

LONE_APPENDS: Final = 16
"""After so many runs of a single append that found nothing pending, the next append is sent at once and not at the end
of its turn: a caller that waits for each append has no other to send with it."""


def cut_runs(sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Cut consecutive appends of these sizes in bytes into runs: the indices (start, end) of each."""
    start = size = 0
    index = -1
    for index, added in enumerate(sizes):
        size += added
        if size >= RUN_BYTES or index - start + 1 >= RUN_ENTRIES:
            yield start, index + 1
            start, size = index + 1, 0
    if start <= index:
        yield start, index + 1


class LoneAppends:
    """Notices a caller that waits for each of its appends."""

    __slots__ = ("_in_a_row", "at_once")

    def __init__(self) -> None:
        self.at_once = False
        """Whether the next append is sent at once if nothing is pending then."""
        self._in_a_row = 0

    def on_run(self, count: int, pending: int) -> None:
        """A run of ``count`` appends begins while ``pending`` earlier entries are not acknowledged."""
        self._in_a_row = self._in_a_row + 1 if count == 1 and not pending else 0
        self.at_once = self._in_a_row >= LONE_APPENDS
