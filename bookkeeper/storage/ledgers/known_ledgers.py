"""The ledgers of a disk: those that were asked for since the start, and behind them the tables of the index segments.

A start reads the tables and decodes none of their rows. A ledger becomes *resident* when it is asked for: its
descriptor is made from the segments that know it, older before newer. Once there is a bound it leaves memory again when
many others were asked for since (:mod:`~bookkeeper.storage.ledgers.resident_ledgers`), and is made anew.

Always true:

    - what no checkpoint has written of a ledger is in a resident descriptor: of any other the segments say everything
    - there is one descriptor of a ledger at a time that anybody may change or keep over a turn of the loop
    - a ledger is here if it is resident, or if a segment knows it and it was not deleted
    - no resident ledger is a deleted one, and deleted ledgers never come back: what tables still say of them is passed
      over, and stays in memory until a merge leaves it out

This is no mapping: nobody walks over all descriptors, which would make all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.storage.index.entry_index import Extent
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.index.segment_table import SegmentTable
from bookkeeper.storage.ledgers.resident_ledgers import ResidentLedgers

DEAR_EXTENTS: Final = 1000
"""A ledger of more extents is not made again and again: that takes the loop more than a millisecond each time."""


class KnownLedgers:
    """Owned by one thread: a start's, then the loop's."""

    def __init__(self, dropped: IdRanges | None = None) -> None:
        """
        Args:
            dropped: ledgers that were deleted.
        """
        self._memory = ResidentLedgers()
        self._recent = self._memory.recent
        self.dropped = dropped if dropped is not None else IdRanges()
        """Ledgers that were deleted here, and ids that are not given out again. Others may add ids of which nothing is
        here; what is here is deleted by :meth:`drop` alone."""
        self._tables: dict[int, SegmentTable] = {}
        """Of the index segments that the manifest names, older before newer."""

    # -- what is asked ------------------------------------------------------------------------------------

    @property
    def resident(self) -> Mapping[int, LedgerDescriptor]:
        """The ledgers whose descriptors are in memory, as long as nothing changes here."""
        return self._memory.all

    def get(self, ledger_id: int) -> LedgerDescriptor | None:
        """A ledger, which is resident from now on; None: there is nothing of it here."""
        found = self._recent.get(ledger_id)
        if found is None:
            found = self._memory.recall(ledger_id)
            if found is None and (found := self._made(ledger_id)) is not None:
                self._memory.keep(found)
        return found

    def __getitem__(self, ledger_id: int) -> LedgerDescriptor:
        found = self.get(ledger_id)
        if found is None:
            raise KeyError(ledger_id)
        return found

    def peek(self, ledger_id: int) -> LedgerDescriptor | None:
        """The same for a caller that changes nothing and drops it in this turn: it does not stay in memory because of
        that, unless it is dear to make."""
        found = self._memory.peek(ledger_id)
        if found is None and (found := self._made(ledger_id)) is not None and len(found.index.extents) > DEAR_EXTENTS:
            self._memory.keep(found)
        return found

    def state_of(self, ledger_id: int) -> LedgerDescriptor | None:
        """The same for whoever asks for nothing of its index, which may be empty."""
        found = self._memory.peek(ledger_id)
        return found if found is not None else self._newest_state(ledger_id, self._knowing(ledger_id))

    def __contains__(self, ledger_id: object) -> bool:
        if ledger_id in self._memory:
            return True
        return ledger_id not in self.dropped and any(ledger_id in table for table in self._tables.values())

    def __iter__(self) -> Iterator[int]:
        """The ids of all that are here, ascending; a snapshot. It makes no descriptor."""
        return iter(self._here(self.resident, (table.ledger_ids() for table in self._tables.values())))

    def within(self, first: int, last: int) -> list[int]:
        """The ids from ``first`` to ``last`` that are here, ascending."""
        resident = [key for key in self.resident if first <= key <= last]
        return self._here(resident, (table.ledger_ids(first, last) for table in self._tables.values()))

    def _here(self, resident: Iterable[int], behind: Iterable[Iterable[int]]) -> list[int]:
        """Each id once, without those that were deleted."""
        ids = sorted(set(resident).union(*behind))
        here: list[int] = []
        begin = 0
        for gone_first, gone_last in self.dropped:
            if begin >= len(ids) or gone_first > ids[-1]:
                break
            if gone_last >= ids[begin]:
                end = bisect_left(ids, gone_first, begin)
                here += ids[begin:end]
                begin = bisect_right(ids, gone_last, end)
        return here + ids[begin:]

    # -- what changes -------------------------------------------------------------------------------------

    def add(self, ledger: LedgerDescriptor) -> None:
        """A ledger that was not here."""
        self._memory.keep(ledger)

    def drop(self, first: int, last: int | None = None) -> None:
        """Ledgers from ``first`` to ``last``, by default one, are deleted; they need not be here."""
        self._memory.drop(first, last if last is not None else first)
        self.dropped.add(first, last)

    def add_table(self, table: SegmentTable) -> None:
        """What one more index segment knows, newer than all others. No ledger may be resident yet: it would not get
        what this segment knows of it."""
        self._tables[table.segment_id] = table
        for first, last in table.dropped:
            self.drop(first, last)

    def adopt(
        self,
        merged: set[int],
        table: SegmentTable | None,
        extents: Mapping[int, list[Extent]],
        tails: Collection[int],
    ) -> None:
        """A checkpoint is complete: its segment takes the place of frozen tails, and of the segments ``merged``, for
        the ledgers in memory and for those that are not.

        Args:
            table: of the new segment; None: none was written.
            extents: what it has of ledgers that were in memory when it was begun; of others the table is asked.
            tails: the ledgers whose tails were frozen for it.
        """
        concerned = set(tails)
        for segment_id in merged:
            if (old := self._tables.pop(segment_id, None)) is not None:
                concerned.update(old.ledger_ids())
        if table is not None:
            self._tables[table.segment_id] = table
        for ledger in self._memory.held(concerned):
            new = extents.get(ledger.ledger_id)
            if new is None:
                new = table.extents(ledger.ledger_id) if table is not None else []
            ledger.index.adopt(merged, new, covers_frozen=ledger.ledger_id in tails)

    # -- how many stay in memory --------------------------------------------------------------------------

    def bound(self, limit: int, must_stay: Callable[[int], bool]) -> None:
        """From now on at most ``limit`` ledgers stay resident, besides those that ``must_stay``: of which a checkpoint
        has to write something."""
        self._memory.bound(limit, must_stay)

    def make_room(self, most: int) -> None:
        """Have ledgers that were not asked for leave memory until there is room; looks at ``most`` of them at most."""
        self._memory.make_room(most)

    # -- from the tables ----------------------------------------------------------------------------------

    def _made(self, ledger_id: int) -> LedgerDescriptor | None:
        """The descriptor of a ledger that is not in memory."""
        knowing = self._knowing(ledger_id)
        if (made := self._newest_state(ledger_id, knowing)) is not None:
            for table in knowing:
                made.index.add(table.extents(ledger_id))
        return made

    def _knowing(self, ledger_id: int) -> list[SegmentTable]:
        """The tables that say something of a ledger, older before newer; none if it was deleted."""
        if ledger_id in self.dropped:
            return []
        return [table for table in self._tables.values() if ledger_id in table]

    def _newest_state(self, ledger_id: int, knowing: Sequence[SegmentTable]) -> LedgerDescriptor | None:
        for table in reversed(knowing):
            if (found := table.state(ledger_id)) is not None:
                return found
        return LedgerDescriptor(LedgerId(ledger_id)) if knowing else None
