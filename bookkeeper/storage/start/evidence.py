"""What shows that the journal once held more than can be read from it (K9).

A group goes into the entry logs, and from there into a checkpoint, only after it was durable. So whatever lies there
behind the mark, and came from no group that was replayed, was durable and is gone from the journal: rot, or a journal
that was put back from an older copy. Nothing of it means that nothing is proved: a last group that is not whole, and
of which there is no trace elsewhere, was never acknowledged.
"""

from __future__ import annotations

from collections.abc import Container
from itertools import chain
from struct import Struct

from bookkeeper.codec import RECORD_HEADER, ledger_runs
from bookkeeper.codec.shapes import LedgerRuns, Scan
from bookkeeper.errors import CorruptionError
from bookkeeper.seams import Buffer, Disk, File
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.base.read_room import ReadRoom
from bookkeeper.storage.entry_log.entry_log_file import LogPiece, log_ids, log_name, scan_steps
from bookkeeper.storage.index.index_segment import read_segment, segment_name
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor, StateRecordKind, explicit_lac_in
from bookkeeper.storage.ledgers.known_ledgers import KnownLedgers
from bookkeeper.storage.start.replayed_groups import ReplayedGroups

_LENGTH = Struct(">I")


class ReplayFindings:
    """What a start knows after it has replayed the journal."""

    def __init__(self, states: KnownLedgers, groups: ReplayedGroups | None = None) -> None:
        """
        Args:
            groups: what was replayed; None: every log is read as far as it goes.
        """
        self._states, self._dropped, self._groups = states, states.dropped, groups

    def known_below(self, file: File, log_id: int, begin: int, *, named: bool) -> int:
        """See :meth:`ReplayedGroups.known_below`."""
        return begin if self._groups is None else self._groups.known_below(file, log_id, begin, named=named)

    def first_unknown(self, data: Buffer, scan: Scan) -> int | None:
        """Which record of a scan was not replayed: its place among them."""
        if self._knows_all(data, ledger_runs(scan)):
            return None
        for at, (offset, ledger_id, entry_id) in enumerate(
            zip(scan.offsets, scan.ledger_ids, scan.entry_ids, strict=True)
        ):
            if ledger_id not in self._dropped and not self._knows(ledger_id, entry_id, data, offset):
                return at
        return None

    def _knows_all(self, data: Buffer, found: LedgerRuns) -> bool:
        """Whether every record of a scan was replayed, run by run: so it is with nearly all of them."""
        for ledger_id, i0, i1, contiguous, _, _ in found.runs:
            if ledger_id in self._dropped:
                continue
            first = found.entry_ids[i0]
            if first >= 0 and contiguous and (state := self._states.get(ledger_id)) is not None:
                places = state.index.tail.dense(first, i1 - i0)
                if len(places) == i1 - i0 and 0 not in places:
                    continue
            for at in range(i0, i1):
                if not self._knows(ledger_id, found.entry_ids[at], data, found.places[at]):
                    return False
        return True

    def _knows(self, ledger_id: int, entry_id: int, data: Buffer, offset: int) -> bool:
        if entry_id == StateRecordKind.DROPPED or (state := self._states.get(ledger_id)) is None:
            return False
        if entry_id >= 0:
            return bool(state.index.get_recent(entry_id))
        if entry_id == StateRecordKind.FENCED:
            return state.fenced
        if entry_id == StateRecordKind.EXPLICIT_LAC:
            told = explicit_lac_in(_entry_at(data, offset))
            return told is None or state.explicit_lac >= told[0]
        return True  # a key comes with what it is the key of; the others change nothing

    def is_behind(self, row: LedgerDescriptor) -> bool:
        """The row of an index segment says more of a ledger."""
        if row.ledger_id in self._dropped:
            return False
        state = self._states.state_of(row.ledger_id)
        return (
            state is None
            or row.last_entry > state.last_entry
            or row.explicit_lac > state.explicit_lac
            or (row.fenced and not state.fenced)
        )

    def still_here(self, first: int, last: int) -> bool:
        """A row of deleted ledgers says more. Ids that were never here are in such rows, too, and in no journal."""
        return bool(self._states.within(first, last))


def _entry_at(data: Buffer, offset: int) -> memoryview:
    """What is in the record at ``offset``, which a scan has found whole."""
    (size,) = _LENGTH.unpack_from(data, offset)
    return memoryview(data)[offset + RECORD_HEADER : offset + RECORD_HEADER + size]


def logged_only(
    disk: Disk, directory: str, before: Manifest, replayed: ReplayFindings, made: Container[str]
) -> str | None:
    """Where an entry log holds a record behind the mark that was not replayed; None: nowhere.

    Args:
        before: the manifest that is the mark. Logs that it does not name, and whose numbers were given out before it,
            are left over: what they hold is covered, or dead.
        made: logs of this very start.
    """
    for log_id in log_ids(disk, directory):
        entry = before.logs.get(log_id)
        if log_name(log_id) in made or (entry.finished if entry is not None else log_id < before.next_log):
            continue
        file = disk.open(f"{directory}/{log_name(log_id)}", write=False)
        try:
            begin = entry.end if entry is not None else BLOCK
            begin = replayed.known_below(file, log_id, begin, named=entry is not None)
            if (place := _unknown_behind(file, begin, replayed)) is not None:
                return place
        finally:
            file.close()
    return None


def _unknown_behind(file: File, begin: int, replayed: ReplayFindings) -> str | None:
    """Where a log holds, from ``begin`` on, a record that was not replayed."""
    for piece in scan_steps(file, file.size(), begin=begin, tail_may_be_torn=True, room=ReadRoom()):
        if isinstance(piece, LogPiece) and (found := replayed.first_unknown(piece.data, piece.scan)) is not None:
            ledger_id, entry_id = piece.scan.ledger_ids[found], piece.scan.entry_ids[found]
            what = f"entry {entry_id}" if entry_id >= 0 else "a state"
            return f"{file.path} at {piece.at + piece.scan.offsets[found]} holds {what} of ledger {ledger_id}"
    return None


def indexed_only(
    disk: Disk, directory: str, before: Manifest, segments: list[int], replayed: ReplayFindings
) -> str | None:
    """The same of index segments of a checkpoint that did not come to its manifest; a torn one proves nothing."""
    for segment_id in segments:
        if segment_id < before.next_segment:
            continue
        path = f"{directory}/{segment_name(segment_id)}"
        file = disk.open(path, write=False)
        try:
            table = read_segment(file, segment_id)
        except CorruptionError:
            continue
        finally:
            file.close()
        behind = chain(
            (row.ledger_id for row in table.all_states() if replayed.is_behind(row)),
            (first for first, last in table.dropped if replayed.still_here(first, last)),
        )
        if (ledger := next(behind, None)) is not None:
            return f"{path} knows more of ledger {ledger}"
    return None
