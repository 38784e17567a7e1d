"""Entries as storage takes them: records that are ready for the disk, and which of them are one run.

The codec cuts both from what a connection received; its results have these fields among others. Storage asks for no
more than these, so it does not know the wire.
"""

from __future__ import annotations

import struct
from array import array
from typing import Final, NamedTuple, Protocol

from bookkeeper.codec import record
from bookkeeper.seams import Buffer


class RecordRun(Protocol):
    """Records ``i0 .. i1 - 1`` of a batch: one ledger, one key, strictly ascending entry ids."""

    @property
    def ledger_id(self) -> int: ...

    @property
    def master_key(self) -> bytes: ...

    @property
    def i0(self) -> int: ...

    @property
    def i1(self) -> int: ...

    @property
    def contiguous(self) -> bool:
        """The entry ids have no holes."""
        ...

    @property
    def lac(self) -> int:
        """The greatest last add confirmed in the run's entries."""
        ...


class EntryRecords(Protocol):
    """Disk records, one behind the other."""

    @property
    def records(self) -> Buffer: ...

    @property
    def record_start(self) -> int:
        """Where record 0 begins in ``records``."""
        ...

    @property
    def record_ends(self) -> array[int]:
        """array('q'): where each record ends in ``records``."""
        ...

    @property
    def entry_ids(self) -> array[int]:
        """array('q'): the entry id of each record."""
        ...


class OneRun(NamedTuple):
    """The run of a single entry."""

    ledger_id: int
    master_key: bytes
    lac: int
    i0: int = 0
    i1: int = 1
    contiguous: bool = True


class FewRecords(NamedTuple):
    """Records in memory of their own."""

    records: Buffer
    record_ends: array[int]
    entry_ids: array[int]
    record_start: int = 0


_IDS: Final = struct.Struct(">qqq")


def apart(batch: EntryRecords, i0: int, i1: int) -> FewRecords:
    """Copies of the records ``i0 .. i1 - 1``."""
    begin, ends = batch.record_ends[i0 - 1] if i0 else batch.record_start, batch.record_ends[i0:i1]
    data = bytes(memoryview(batch.records)[begin : ends[-1]])
    return FewRecords(data, array("q", [end - begin for end in ends]), batch.entry_ids[i0:i1])


def one_record(entry: Buffer, master_key: bytes) -> tuple[OneRun, FewRecords]:
    """The run and the record of one entry as it came: header of 32 bytes, digest, payload."""
    data = record(entry)
    ledger_id, entry_id, lac = _IDS.unpack_from(entry)
    return OneRun(ledger_id, master_key, lac), FewRecords(data, array("q", [len(data)]), array("q", [entry_id]))
