"""The table and the states of one index segment as they are in the file: what a start keeps of ledgers nobody asks for.

Nothing is decoded until a ledger is asked for: 36 bytes an extent and about 75 bytes a ledger, as on the disk, and 24
bytes of sorted ids and offsets for the lookup. Pure: no I/O.

Rows of a table are in the order of their ledgers, in files that this version has written. Files of older versions are
in any order of ledgers; their rows are put in order here. The rows of one ledger stay in theirs, older before newer.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import le
from struct import Struct

from bookkeeper.errors import CorruptionError
from bookkeeper.storage.index.entry_index import Extent
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor, decode_row, find_rows, row_at

_ROW = Struct(">qqIIQI")
_OFFSET = Struct(">24xQ4x")


def extent_row(ledger_id: int, first: int, count: int, present: int, offset: int, crc: int) -> bytes:
    """The row of an extent."""
    return _ROW.pack(ledger_id, first, count, present, offset, crc)


class SegmentTable:
    """What an index segment knows, except its pages. It does not change, so that any thread may read it."""

    __slots__ = ("_offsets", "_owners", "_rows", "_state_owners", "_states", "dropped", "segment_id")

    def __init__(self, segment_id: int, rows: bytes = b"", states: bytes = b"") -> None:
        """
        Args:
            rows: the rows of the segment's table.
            states: the rows of its states.

        Raises:
            CorruptionError: rows are cut short.
        """
        self.segment_id = segment_id
        self._owners, self._rows = _in_order(rows)
        """The ledger of each row, ascending, and the rows."""
        found = find_rows(states)
        self.dropped: Sequence[tuple[int, int]] = tuple(found.dropped)
        """Deleted ledgers: first and last of each run."""
        self._states, self._state_owners, self._offsets = states, found.ledger_ids, found.offsets
        if not _ascends(self._state_owners):
            order = sorted(range(len(self._state_owners)), key=self._state_owners.__getitem__)
            self._state_owners = array("q", [found.ledger_ids[at] for at in order])
            self._offsets = array("Q", [found.offsets[at] for at in order])

    def ledger_ids(self, first: int | None = None, last: int | None = None) -> Iterator[int]:
        """The ledgers of which it says anything, except that they are deleted; if so asked, only those from ``first``
        to ``last``. Some come more than once."""
        found = [self._owners, self._state_owners]
        if first is not None:
            found = [ids[bisect_left(ids, first) :] for ids in found]
        if last is not None:
            found = [ids[: bisect_right(ids, last)] for ids in found]
        return chain.from_iterable(found)

    def __contains__(self, ledger_id: object) -> bool:
        """Whether it says anything of a ledger, except that it is deleted."""
        if not isinstance(ledger_id, int):
            return False
        return any(
            (at := bisect_left(owners, ledger_id)) < len(owners) and owners[at] == ledger_id
            for owners in (self._owners, self._state_owners)
        )

    def extents(self, ledger_id: int) -> list[Extent]:
        """The extents of a ledger, older before newer."""
        begin = bisect_left(self._owners, ledger_id)
        return list(self._decoded(begin, bisect_right(self._owners, ledger_id, begin)))

    def state(self, ledger_id: int) -> LedgerDescriptor | None:
        """The ledger as the segment knows it, without its extents; None: it says nothing of its state."""
        row = self.state_row(ledger_id)
        return decode_row(row) if row is not None else None

    def state_row(self, ledger_id: int) -> bytes | None:
        """The same as the row that is in the file."""
        at = bisect_right(self._state_owners, ledger_id) - 1
        if at < 0 or self._state_owners[at] != ledger_id:
            return None
        return row_at(self._states, self._offsets[at])

    def all_extents(self) -> Iterator[Extent]:
        """All extents, as their pages follow each other in the file."""
        offsets = array("Q", chain.from_iterable(_OFFSET.iter_unpack(self._rows)))
        if _ascends(offsets):
            yield from self._decoded(0, len(offsets))
        else:
            for at in sorted(range(len(offsets)), key=offsets.__getitem__):
                yield from self._decoded(at, at + 1)

    def all_states(self) -> Iterator[LedgerDescriptor]:
        """The ledgers of which it knows the state, without their extents, by id."""
        return (decode_row(row_at(self._states, offset)) for offset in self._offsets)

    def _decoded(self, begin: int, end: int) -> Iterator[Extent]:
        rows = memoryview(self._rows)[_ROW.size * begin : _ROW.size * end]
        for ledger_id, first, count, present, offset, crc in _ROW.iter_unpack(rows):
            yield Extent(ledger_id, first, count, present, self.segment_id, offset, crc)


def _in_order(rows: bytes) -> tuple[array[int], bytes]:
    """The ledger of each row, and the rows, both by ledger."""
    if len(rows) % _ROW.size:
        raise CorruptionError("an index table: cut short")
    owners = array("q", bytes(len(rows) // _ROW.size * 8))
    halves, words = memoryview(owners).cast("B").cast("I"), memoryview(rows).cast("I")
    halves[0::2], halves[1::2] = words[0 :: _ROW.size // 4], words[1 :: _ROW.size // 4]
    if sys.byteorder == "little":
        owners.byteswap()
    if _ascends(owners):
        return owners, rows
    order = sorted(range(len(owners)), key=owners.__getitem__)
    size = _ROW.size
    return array("q", [owners[at] for at in order]), b"".join([rows[size * at : size * (at + 1)] for at in order])


def _ascends(ids: array[int]) -> bool:
    return all(map(le, ids, islice(ids, 1, None)))
