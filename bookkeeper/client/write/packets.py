"""The frames of adds that may still have to be sent again.

Each run is encoded once. The same bytes go to every bookie, now and after an ensemble change. They are immutable and
stay until the writer releases them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper import codec
from bookkeeper.ledger import QuorumSpec
from bookkeeper.seams import Buffer

STRIPES_KEPT: Final = 1024
"""How many lists of indices are remembered."""


@dataclass(frozen=True, slots=True)
class _Frames:
    first: int
    count: int
    frames: bytes
    ends: array[int]
    """Where each frame ends in ``frames``."""


class Packets:
    """Frames of consecutive entries, by run."""

    def __init__(self, spec: QuorumSpec) -> None:
        self._spec = spec
        self._striped = spec.is_striped
        self._runs: deque[_Frames] = deque()
        self._stripes: dict[tuple[int, int, int, int], list[int]] = {}
        self.size = 0
        """Bytes held."""

    def keep(self, first: int, count: int, frames: bytes, ends: array[int]) -> None:
        """Add the next run."""
        assert not self._runs or self._runs[-1].first + self._runs[-1].count == first, "runs follow each other"
        self._runs.append(_Frames(first, count, frames, ends))
        self.size += len(frames)

    def release(self, upto: int) -> None:
        """Drop every run that lies wholly at or below entry ``upto``."""
        held = self._runs
        while held and held[0].first + held[0].count - 1 <= upto:
            self.size -= len(held.popleft().frames)

    @property
    def first(self) -> int | None:
        """The lowest entry that is held; None if none is."""
        return self._runs[0].first if self._runs else None

    def frames(self, position: int, first: int, count: int) -> Sequence[Buffer]:
        """The frames of ``first .. first + count - 1`` that the bookie at ``position`` holds, in pieces, in order."""
        newest = self._runs[-1]
        if newest.first == first and newest.count == count:  # nearly always: it was encoded this moment
            return (self._cut(newest, position, first, first + count),) if self._striped else (newest.frames,)
        pieces: list[Buffer] = []
        end = first + count
        index = bisect_right(self._runs, first, key=lambda run: run.first) - 1
        assert index >= 0, f"entry {first} was released"
        for number in range(index, len(self._runs)):
            run = self._runs[number]
            if run.first >= end:
                break
            piece = self._cut(run, position, max(first, run.first), min(end, run.first + run.count))
            if piece:
                pieces.append(piece)
        return pieces

    def _cut(self, run: _Frames, position: int, first: int, end: int) -> Buffer:
        """The run's frames of ``first .. end - 1`` that this bookie holds; empty if it holds none."""
        if self._striped:
            held = self._stripe(position, first, end - first, first - run.first)
            return codec.gather(run.frames, run.ends, held) if held else b""
        if end - first == run.count:
            return run.frames
        start = run.ends[first - run.first - 1] if first > run.first else 0
        return memoryview(run.frames)[start : run.ends[end - run.first - 1]]

    def _stripe(self, position: int, first: int, count: int, offset: int) -> list[int]:
        """The indices, from ``offset`` on, of a run's frames that the bookie at ``position`` holds.

        They are remembered, because they repeat with every turn of the ensemble, and most runs of a busy writer have
        one size.
        """
        key = (position, first % self._spec.ensemble_size, count, offset)
        held = self._stripes.get(key)
        if held is None:
            if len(self._stripes) >= STRIPES_KEPT:
                self._stripes.clear()
            stripe = self._spec.stripe(position, first, count)
            held = self._stripes[key] = [entry - first + offset for entry in stripe]
        return held
