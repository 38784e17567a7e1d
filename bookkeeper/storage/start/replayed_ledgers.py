"""The ledgers of a directory while a start reads it: from index segments, then run by run. Pure: no I/O."""

from __future__ import annotations

from bookkeeper.codec import RECORD_HEADER, ledger_runs
from bookkeeper.codec.shapes import LedgerRuns, Scan
from bookkeeper.ids import IdRanges, LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor, StateRecordKind, apply_state
from bookkeeper.storage.ledgers.known_ledgers import KnownLedgers


class ReplayedLedgers:
    """What is added later is newer."""

    def __init__(self) -> None:
        self.states = KnownLedgers()
        self.news: set[int] = set()
        """Ledgers of which something came from a record: no index segment knows it. They are resident, or deleted."""

    @property
    def dropped(self) -> IdRanges:
        return self.states.dropped

    def begin_anew(self, dropped: IdRanges) -> None:
        """The index is rebuilt: of what segments said only deleted ledgers are kept."""
        self.states = KnownLedgers(dropped)

    def apply(self, data: Buffer, scan: Scan, base: int) -> None:
        """Add the records of a scan to states and index; ``base`` is the place of ``data``'s first byte."""
        self.apply_runs(data, ledger_runs(scan, base), base)

    def apply_runs(self, data: Buffer, found: LedgerRuns, base: int) -> None:
        """The same of a scan's runs, whose places are made with ``base``."""
        places, entry_ids = found.places, found.entry_ids
        for ledger_id, i0, i1, contiguous, lac, size in found.runs:
            if ledger_id in self.dropped:
                continue
            self.news.add(ledger_id)
            first = entry_ids[i0]
            if first == StateRecordKind.DROPPED:
                self.states.drop(ledger_id)
                continue
            state = self._state(ledger_id)
            if first < 0:
                begin = places[i0] - base + RECORD_HEADER
                apply_state(state, first, memoryview(data)[begin : begin + size - RECORD_HEADER])
                continue
            if contiguous:
                state.index.tail.extend(first, places[i0:i1])
            else:
                state.index.tail.scatter(entry_ids, i0, i1, places[i0:i1])
            state.note_entries(first, entry_ids[i1 - 1], lac, size)

    def _state(self, ledger_id: int) -> LedgerDescriptor:
        if (state := self.states.get(ledger_id)) is None:
            state = LedgerDescriptor(LedgerId(ledger_id))
            self.states.add(state)
        return state
