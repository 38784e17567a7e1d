"""What shows that the journal once held more than can be read from it (K9).

A group goes into the entry logs, and from there into a checkpoint, only after it was durable. So whatever lies there
behind the mark, and came from no group that was replayed, was durable and is gone from the journal: rot, or a journal
that was put back from an older copy. Nothing of it means that nothing is proved: a last group that is not whole, and
of which there is no trace elsewhere, was never acknowledged.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from struct import Struct

from bookkeeper.codec import RECORD_HEADER
from bookkeeper.codec.shapes import Scan
from bookkeeper.errors import CorruptionError
from bookkeeper.seams import Disk
from bookkeeper.storage.checkpoint.manifest import Manifest
from bookkeeper.storage.durable_file import BLOCK
from bookkeeper.storage.entry_log.entry_log_file import log_ids, log_name, scan_log
from bookkeeper.storage.index.index_segment import read_segment, segment_name
from bookkeeper.storage.ledger_descriptor import LedgerDescriptor, StateRecordKind

_LAC = Struct(">q")


class ReplayFindings:
    """What a start knows after it has replayed the journal."""

    def __init__(self, states: Mapping[int, LedgerDescriptor], dropped: Container[int]) -> None:
        self._states, self._dropped = states, dropped

    def first_unknown(self, data: bytes, scan: Scan) -> int | None:
        """Which record of a scan was not replayed: its place among them."""
        for at, (offset, ledger_id, entry_id) in enumerate(
            zip(scan.offsets, scan.ledger_ids, scan.entry_ids, strict=True)
        ):
            if ledger_id not in self._dropped and not self._knows(ledger_id, entry_id, data, offset):
                return at
        return None

    def _knows(self, ledger_id: int, entry_id: int, data: bytes, offset: int) -> bool:
        if entry_id == StateRecordKind.DROPPED or (state := self._states.get(ledger_id)) is None:
            return False
        if entry_id >= 0:
            return bool(state.index.get_recent(entry_id))
        if entry_id == StateRecordKind.FENCED:
            return state.fenced
        if entry_id == StateRecordKind.EXPLICIT_LAC:
            return bool(state.explicit_lac >= _LAC.unpack_from(data, offset + RECORD_HEADER + 16)[0])
        return True  # a key comes with what it is the key of; the others change nothing

    def is_behind(self, row: LedgerDescriptor | tuple[int, int]) -> bool:
        """The row of an index segment says more of a ledger. Of deleted ones only if they are still here: ids that
        were never here are in such rows, too, and in no journal."""
        if isinstance(row, tuple):
            first, last = row
            return any(first <= ledger_id <= last for ledger_id in self._states)
        if row.ledger_id in self._dropped:
            return False
        state = self._states.get(row.ledger_id)
        return (
            state is None
            or row.last_entry > state.last_entry
            or row.explicit_lac > state.explicit_lac
            or (row.fenced and not state.fenced)
        )


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
        path = f"{directory}/{log_name(log_id)}"
        place: list[str] = []

        def look(data: bytes, at: int, scan: Scan, path: str = path, place: list[str] = place) -> None:
            if not place and (found := replayed.first_unknown(data, scan)) is not None:
                ledger_id, entry_id = scan.ledger_ids[found], scan.entry_ids[found]
                what = f"entry {entry_id}" if entry_id >= 0 else "a state"
                place.append(f"{path} at {at + scan.offsets[found]} holds {what} of ledger {ledger_id}")

        file = disk.open(path, write=False)
        try:
            begin = entry.end if entry is not None else BLOCK
            scan_log(file, file.size(), look, begin=begin, tail_may_be_torn=True)
        finally:
            file.close()
        if place:
            return place[0]
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
            rows = read_segment(file, segment_id).states
        except CorruptionError:
            continue
        finally:
            file.close()
        for row in rows:
            if replayed.is_behind(row):
                ledger = row[0] if isinstance(row, tuple) else row.ledger_id
                return f"{path} knows more of ledger {ledger}"
    return None
