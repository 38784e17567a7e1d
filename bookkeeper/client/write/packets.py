"""The frames of adds that may still have to be sent again.

Each run is encoded once. The same bytes go to every bookie, now and after an ensemble change. They are immutable and
stay until the writer releases them. Large payloads are not copied into the frames: each is sent behind its frame's
beginning as the caller gave it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper import codec
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import DigestScheme, QuorumSpec
from bookkeeper.ledger.write import Encode
from bookkeeper.seams import Buffer
from bookkeeper.wire import Dialect

STRIPES_KEPT: Final = 1024
"""How many lists of indices are remembered."""

APART_MIN: Final = 16 * 1024
"""Bytes from which on payloads stay apart: a piece more in each write costs less than the copy of so many."""


@dataclass(frozen=True, slots=True)
class Framing:
    """What the frames of one ledger's adds have in common."""

    dialect: Dialect
    ledger_id: LedgerId
    digest: DigestScheme
    stream_id: int
    deferred: bool = False


class _Frames:
    """A run whose frames lie one behind the other."""

    __slots__ = ("_ends", "_frames", "count", "first", "size", "whole")

    def __init__(self, first: int, count: int, frames: bytes, ends: array[int]) -> None:
        """``ends``: where each frame ends in ``frames``."""
        self.first, self.count, self.size = first, count, len(frames)
        self.whole: Sequence[Buffer] = (frames,)
        self._frames, self._ends = frames, ends

    def pick(self, indices: Sequence[int]) -> Sequence[Buffer]:
        """The frames with these indices, which ascend."""
        return (codec.gather(self._frames, self._ends, indices),)

    def cut(self, begin: int, end: int) -> Sequence[Buffer]:
        """The frames ``begin .. end - 1``."""
        start = self._ends[begin - 1] if begin else 0
        return (memoryview(self._frames)[start : self._ends[end - 1]],)


class _SplitFrames:
    """A run of large entries: the beginning of each frame, and its payload."""

    __slots__ = ("_pieces", "count", "first", "size", "whole")

    def __init__(self, first: int, beginnings: bytes, ends: array[int], payloads: Sequence[Buffer]) -> None:
        self.first, self.count = first, len(payloads)
        self.size = len(beginnings) + sum(map(len, payloads))
        view, at = memoryview(beginnings), 0
        pieces: list[Buffer] = []
        for end, payload in zip(ends, payloads, strict=True):
            pieces += (view[at:end], payload)
            at = end
        self._pieces = pieces
        self.whole: Sequence[Buffer] = pieces

    def pick(self, indices: Sequence[int]) -> Sequence[Buffer]:
        """The frames with these indices, which ascend."""
        return [piece for index in indices for piece in self._pieces[2 * index : 2 * index + 2]]

    def cut(self, begin: int, end: int) -> Sequence[Buffer]:
        """The frames ``begin .. end - 1``."""
        return self._pieces[2 * begin : 2 * end]


class Packets:
    """Frames of consecutive entries, by run."""

    def __init__(self, spec: QuorumSpec, framing: Framing) -> None:
        self._spec = spec
        self.framing = framing
        """What the frames of the ledger have in common."""
        self._striped = spec.is_striped
        self._runs: deque[_Frames | _SplitFrames] = deque()
        self._stripes: dict[tuple[int, int, int, int], array[int]] = {}
        self.size = 0
        """Bytes held."""

    def encode(self, run: Encode, payloads: Sequence[Buffer]) -> None:
        """Add the next run."""
        framing, digest = self.framing, self.framing.digest
        apart = not framing.deferred and len(payloads[0]) >= APART_MIN and min(map(len, payloads)) >= APART_MIN
        frames, ends = codec.encode_adds(
            framing.dialect,
            framing.ledger_id,
            run.first,
            payloads,
            run.lac,
            run.length_before,
            digest.master_key,
            digest.digest_type,
            digest.mac_key,
            framing.stream_id << codec.STREAM_SHIFT,
            framing.deferred,
            apart,
        )
        held = self._runs
        assert not held or held[-1].first + held[-1].count == run.first, "runs follow each other"
        kept = _SplitFrames(run.first, frames, ends, payloads) if apart else _Frames(run.first, run.count, frames, ends)
        held.append(kept)
        self.size += kept.size

    def drop_all(self) -> None:
        """Drop every run: nothing is sent any more."""
        self._runs.clear()
        self.size = 0

    def release(self, upto: int) -> None:
        """Drop every run that lies wholly at or below entry ``upto``."""
        held = self._runs
        while held and held[0].first + held[0].count - 1 <= upto:
            self.size -= held.popleft().size

    @property
    def first(self) -> int | None:
        """The lowest entry that is held; None if none is."""
        return self._runs[0].first if self._runs else None

    def frames(self, position: int, first: int, count: int) -> Sequence[Buffer]:
        """The frames of ``first .. first + count - 1`` that the bookie at ``position`` holds, in pieces, in order."""
        newest = self._runs[-1]
        if newest.first == first and newest.count == count:  # nearly always: it was encoded this moment
            return self._cut(newest, position, first, first + count) if self._striped else newest.whole
        pieces: list[Buffer] = []
        end = first + count
        index = bisect_right(self._runs, first, key=lambda run: run.first) - 1
        assert index >= 0, f"entry {first} was released"
        for number in range(index, len(self._runs)):
            run = self._runs[number]
            if run.first >= end:
                break
            pieces += self._cut(run, position, max(first, run.first), min(end, run.first + run.count))
        return pieces

    def _cut(self, run: _Frames | _SplitFrames, position: int, first: int, end: int) -> Sequence[Buffer]:
        """The run's frames of ``first .. end - 1`` that this bookie holds; empty if it holds none."""
        if self._striped:
            held = self._stripe(position, first, end - first, first - run.first)
            return run.pick(held) if held else ()
        if end - first == run.count:
            return run.whole
        return run.cut(first - run.first, end - run.first)

    def _stripe(self, position: int, first: int, count: int, offset: int) -> array[int]:
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
            held = self._stripes[key] = array("q", [entry - first + offset for entry in stripe])
        return held
