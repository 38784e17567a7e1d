"""A group of records whose places are in many logs: in the journal it is one, behind it each ledger has its own."""

from __future__ import annotations

from array import array

from bookkeeper.codec import record_places
from bookkeeper.seams import Buffer
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.journal.journal_format import GROUP_HEADER
from bookkeeper.storage.journal.pending_group import GroupBuffer, PendingGroup
from bookkeeper.storage.ledger_logs.ledger_logs import SHARED, GroupPart, LedgerLog, LedgerLogs


class LedgerGroup(PendingGroup):
    """Its records are in the memory of their logs from the beginning, and are read there."""

    __slots__ = ("_logs", "parts")

    def __init__(self, buffer: GroupBuffer, logs: LedgerLogs) -> None:
        super().__init__(buffer, 0, 0)
        self._logs = logs
        self.parts: dict[int, GroupPart] = {}
        """What it has in each log, by the log's id."""

    def add_run(self, ledger_id: int, records: Buffer, begin: int, ends: array[int], i0: int, i1: int) -> array[int]:
        """See :class:`PendingGroup`."""
        size, before, count = ends[i1 - 1] - begin, self.size, i1 - i0
        at = GROUP_HEADER + before
        piece = memoryview(records)[begin : begin + size]
        log = self._logs.take(ledger_id, piece)
        self.buffer.view[at : at + size] = piece
        self.size = before + size
        self.records += count
        base = self._note(log, ledger_id, size, count)
        return record_places(ends, i0, i1, begin, base - begin)

    def add_record(self, ledger_id: int, data: bytes, *, outlives: bool = False) -> int:
        """See :class:`PendingGroup`."""
        log = self._logs.take(SHARED if outlives else ledger_id, data)
        if outlives:
            self._logs.end_of(ledger_id)
        self.buffer.view[GROUP_HEADER + self.size : GROUP_HEADER + self.size + len(data)] = data
        self.size += len(data)
        self.records += 1
        return self._note(log, ledger_id, len(data), 1)

    def _note(self, log: LedgerLog, ledger_id: int, size: int, count: int) -> int:
        """Count records at the end of a log. Returns the place of the first."""
        end = log.end
        part = self.parts.get(log.log_id)
        if part is None:
            self.parts[log.log_id] = GroupPart(end, {ledger_id: [size, count]})
        else:
            part.end = end
            row = part.usage.setdefault(ledger_id, [0, 0])
            row[0] += size
            row[1] += count
        return place(log.log_id, end - size)

    def holds(self, log_id: int, offset: int) -> bool:
        """See :class:`PendingGroup`: the memory of the log holds its records."""
        return False

    def follows(self, before: PendingGroup) -> bool:
        """See :class:`PendingGroup`."""
        if not isinstance(before, LedgerGroup):
            return False
        return all(part.end <= self.parts[log_id].end for log_id, part in before.parts.items() if log_id in self.parts)
