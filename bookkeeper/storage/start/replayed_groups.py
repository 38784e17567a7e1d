"""Which groups a start has replayed, and what of an entry log comes from them alone.

A log of many ledgers takes whole groups in their order, each right behind the one before (K33, K34), and its header
says with which group it begins. So the sizes of the groups say where each of them lies in it. Below the end of the last
group that was replayed there is nothing but replayed groups, and nobody has to read it to know that. Without this a
start would read twice what was written since the mark. A part of a log is passed over only if

    the replayed groups follow one another without a gap, from the mark on
    the log begins with a replayed group, or goes on behind the mark at the end that the manifest gives
    the last replayed group that fits into it is there, byte for byte, where the sizes say

The last condition fails in a log that lost a part of itself in a power cut, or is not what it says. Whatever fails, the
log is read from its beginning.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from bookkeeper.seams import Buffer, File
from bookkeeper.storage.entry_log.entry_log_file import first_group_of
from bookkeeper.storage.index.entry_index import LOG_SHIFT, OFFSET_MASK, place

Read = Callable[[int, int, int], Buffer]
"""(log id, size, offset) -> the bytes there, in a log of this start."""


class ReplayedGroups:
    """Filled by the replay; 16 bytes a group."""

    def __init__(self, mark: int, read: Read) -> None:
        """
        Args:
            mark: the last group that is covered.
            read: reads what the replay has written.
        """
        self._mark, self._last, self._read = mark, mark, read
        self._ends = array("q", [0])
        """How many bytes of records the groups up to here have."""
        self._places = array("q", [0])
        """Where the start has put them."""
        self._gap = False

    def follows(self, sequence: int) -> bool:
        """Whether this is the group behind the last one that was added; behind the mark if there is none."""
        return sequence == self._last + 1

    def add(self, sequence: int, size: int, log_id: int, offset: int) -> None:
        """A group was replayed: ``size`` bytes of records, which lie at ``offset`` of a log of this start; a group
        without records has a size of 0."""
        self._gap = self._gap or not self.follows(sequence)
        self._last = sequence
        if not self._gap:
            self._ends.append(self._ends[-1] + size)
            self._places.append(place(log_id, offset) if size else 0)

    def known_below(self, file: File, log_id: int, begin: int, *, named: bool) -> int:
        """Below which offset a log holds, from ``begin`` on, nothing but groups that were replayed; ``begin`` if that
        cannot be told without reading it.

        Args:
            begin: of a log that the manifest names, where the groups up to the mark end; else where its records begin.

        Raises:
            OSError: it cannot be read.
        """
        room = file.size() - begin
        skipped = self._groups_before(file, log_id, named=named) if room > 0 and not self._gap else None
        if skipped is None:
            return begin
        base = self._ends[skipped]
        at = bisect_right(self._ends, base + room) - 1
        at = bisect_left(self._ends, self._ends[at])  # not a group without records
        size = self._ends[at] - self._ends[at - 1] if at > skipped else 0
        if not size:
            return begin
        below = begin + self._ends[at] - base
        copy = self._read(self._places[at] >> LOG_SHIFT, size, self._places[at] & OFFSET_MASK)
        return below if file.pread(size, below - size) == copy else begin

    def _groups_before(self, file: File, log_id: int, *, named: bool) -> int | None:
        """How many of the replayed groups come before the first one behind the mark in a log; None: that is not known,
        or that group was not replayed."""
        first = first_group_of(file, log_id)
        if named:
            return 0 if 0 < first <= self._mark else None
        behind = first - self._mark
        return behind - 1 if first and 0 < behind < len(self._ends) else None
