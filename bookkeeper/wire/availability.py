"""The list of entries that a bookie holds of a ledger: the answer to GET_LIST_OF_ENTRIES_OF_LEDGER.

::

    [version i32 = 0][groups i32][56 zeros]
    then per group, rising: [first start i64][last start i64][size i32][period i32]

A group stands for sequences of ``size`` entries that begin at ``first start``, ``first start + period`` and so on, up
to ``last start``; period 0 means one sequence only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from bookkeeper.amounts import counted
from bookkeeper.errors import MalformedFrameError

HEADER: Final = Struct(">ii56x")
GROUP: Final = Struct(">qqii")
_SIZE_MAX: Final = 0x7FFF_FFFF
"""The greatest size of a group: it has 31 bits."""
RUNS_MAX: Final = 1 << 24
"""Runs that are made of an answer at most: 24 bytes of it may stand for any number of them."""
_END_MAX: Final = (1 << 63) - 1
"""The greatest entry that a list may have."""


class SequenceGroup(NamedTuple):
    """Sequences of ``size`` entries each, which begin every ``period`` entries."""

    first_start: int
    last_start: int
    size: int
    period: int

    @property
    def end(self) -> int:
        """The group's last entry."""
        return self.last_start + self.size - 1

    @property
    def sequences(self) -> int:
        """How many sequences it stands for."""
        return (self.last_start - self.first_start) // self.period + 1 if self.period else 1


class HeldEntries:
    """The entries that one bookie says it holds of one ledger. ``entry_id in held``; iterating gives runs."""

    def __init__(self, groups: Iterable[SequenceGroup] = ()) -> None:
        self.groups: Final = tuple(groups)
        self._starts = [group.first_start for group in self.groups]

    def __repr__(self) -> str:
        if self.sequences > RUNS_MAX:
            return f"HeldEntries({self.sequences} sequences)"
        return f"HeldEntries({', '.join(f'{first}..{last}' for first, last in self.runs())})"

    def __contains__(self, entry_id: object) -> bool:
        if not isinstance(entry_id, int):
            return False
        at = bisect_right(self._starts, entry_id) - 1
        if at < 0:
            return False
        group = self.groups[at]
        offset = entry_id - group.first_start
        return entry_id <= group.end and (offset % group.period if group.period else offset) < group.size

    def holds_all(self, first: int, last: int) -> bool:
        """Whether every entry from ``first`` to ``last`` is there. Looks at groups, not at entries."""
        at = bisect_right(self._starts, first) - 1
        while 0 <= at < len(self.groups) and first in self:
            group = self.groups[at]
            offset = first - group.first_start
            first += group.size - (offset % group.period if group.period else offset)
            if first > last:
                return True
            if first > group.end:
                at += 1
        return False

    def __len__(self) -> int:
        """How many entries the bookie holds. Groups do not overlap, so no entry is counted twice."""
        return min(sum(group.size * group.sequences for group in self.groups), _END_MAX)

    @property
    def sequences(self) -> int:
        """How many sequences the groups stand for."""
        return sum(group.sequences for group in self.groups)

    @property
    def last(self) -> int:
        """The greatest entry; -1: there is none."""
        return self.groups[-1].end if self.groups else -1

    def __bool__(self) -> bool:
        return bool(self.groups)

    def runs(self) -> Iterator[tuple[int, int]]:
        """(first, last) of each run of consecutive entries, in ascending order. Groups that touch make one run.

        Raises:
            MalformedFrameError: they stand for more than ``RUNS_MAX`` sequences; no bookie holds so many.
        """
        if self.sequences > RUNS_MAX:
            raise MalformedFrameError(
                f"a list of entries stands for {self.sequences} sequences of entries, and {RUNS_MAX} are believed"
            )
        return self._runs()

    def _runs(self) -> Iterator[tuple[int, int]]:
        pending: tuple[int, int] | None = None
        for group in self.groups:
            for start in range(group.first_start, group.last_start + 1, group.period or 1):
                run = (start, start + group.size - 1)
                if pending is not None and run[0] <= pending[1] + 1:
                    pending = (pending[0], max(pending[1], run[1]))
                    continue
                if pending is not None:
                    yield pending
                pending = run
        if pending is not None:
            yield pending


def encode_availability(runs: Iterable[tuple[int, int]]) -> bytes:
    """The answer of a bookie that holds these entries: one group per run, given as (first, last) in ascending order."""
    groups = []
    for first, last in runs:
        while first <= last:
            size = min(last - first + 1, _SIZE_MAX)
            groups.append(GROUP.pack(first, first, size, 0))
            first += size
    return HEADER.pack(0, len(groups)) + b"".join(groups)


def decode_availability(body: bytes) -> HeldEntries:
    """The entries in a bookie's answer.

    Raises:
        MalformedFrameError: the version or the size is wrong, or the groups overlap, are out of order or make no sense.
    """
    if len(body) < HEADER.size:
        raise MalformedFrameError(f"a list of entries has {len(body)} bytes; its header alone has {HEADER.size}")
    version, count = HEADER.unpack_from(body)
    if version != 0 or count < 0 or len(body) != HEADER.size + count * GROUP.size:
        raise MalformedFrameError(
            f"a list of entries says version {version} and {counted(count, 'group')}, and has "
            f"{len(body)} bytes; version 0 is "
            f"known, with {HEADER.size} bytes and {GROUP.size} for each group"
        )
    groups = [SequenceGroup(*GROUP.unpack_from(body, HEADER.size + i * GROUP.size)) for i in range(count)]
    last = -1
    for group in groups:
        single = group.period == 0 and group.first_start == group.last_start
        several = group.period >= group.size and group.last_start >= group.first_start
        if group.size < 1 or group.first_start <= last or group.end > _END_MAX or not (single or several):
            raise MalformedFrameError(
                f"a list of entries has a bad group: its sequences begin at entries {group.first_start} to "
                f"{group.last_start}, every {group.period}, with {counted(group.size, 'entry')} each; "
                "the group before it ends "
                f"at entry {last}"
            )
        last = group.end
    return HeldEntries(groups)
