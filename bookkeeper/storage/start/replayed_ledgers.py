"""The ledgers of a directory while a start reads it: from index segments, then record by record. Pure: no I/O."""

from __future__ import annotations

from bookkeeper.codec import RECORD_HEADER
from bookkeeper.codec.shapes import Scan
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.storage.index.entry_index import Extent
from bookkeeper.storage.index.index_segment import IndexSegment
from bookkeeper.storage.ledger_descriptor import LedgerDescriptor, StateRecordKind, apply_state


class ReplayedLedgers:
    """What is added later is newer."""

    def __init__(self) -> None:
        self.states: dict[int, LedgerDescriptor] = {}
        self.dropped = IdRanges()
        self.news: set[int] = set()
        """Ledgers of which something came from a record: no index segment knows it."""

    def add_segment(self, segment: IndexSegment) -> None:
        """What an index segment knows; segments come oldest first."""
        by_ledger: dict[int, list[Extent]] = {}
        for extent in segment.extents:
            by_ledger.setdefault(extent.ledger_id, []).append(extent)
        for ledger_id, extents in by_ledger.items():
            self._state(ledger_id).index.add(extents)
        for row in segment.states:
            if isinstance(row, LedgerDescriptor):
                if (known := self.states.get(row.ledger_id)) is not None:
                    row.index = known.index
                self.states[row.ledger_id] = row
            else:
                self._drop_all(*row)

    def begin_anew(self, dropped: IdRanges) -> None:
        """The index is rebuilt: of what segments said only deleted ledgers are kept."""
        self.states.clear()
        self.dropped = dropped

    def apply(self, data: bytes, scan: Scan, base: int) -> None:
        """Add the records of a scan to states and index; ``base`` is the place of ``data``'s first byte."""
        rows = zip(scan.offsets, scan.ledger_ids, scan.entry_ids, scan.lacs, scan.sizes, strict=True)
        for offset, ledger_id, entry_id, lac, size in rows:
            if ledger_id in self.dropped:
                continue
            self.news.add(ledger_id)
            if entry_id == StateRecordKind.DROPPED:
                self._drop(ledger_id)
                continue
            state = self._state(ledger_id)
            if entry_id < 0:
                begin = offset + RECORD_HEADER
                apply_state(state, entry_id, memoryview(data)[begin : begin + size])
                continue
            state.index.tail.put(entry_id, base + offset)
            state.note_entries(entry_id, entry_id, lac, RECORD_HEADER + size)

    def _state(self, ledger_id: int) -> LedgerDescriptor:
        if (state := self.states.get(ledger_id)) is None:
            state = self.states[ledger_id] = LedgerDescriptor(LedgerId(ledger_id))
        return state

    def _drop_all(self, first: int, last: int) -> None:
        if first < last:
            for ledger_id in [key for key in self.states if first <= key <= last]:
                self.states.pop(ledger_id)
            self.dropped.add(first, last)
        else:
            self._drop(first)

    def _drop(self, ledger_id: int) -> None:
        self.states.pop(ledger_id, None)
        self.dropped.add(ledger_id)
