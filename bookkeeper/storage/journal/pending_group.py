"""A group of records on its way to the disk: collected in memory, written to the journal, copied to the entry log.

It is collected in an aligned buffer with room for the header before the records and the padding behind them. The whole
buffer is written to the journal; the records alone then go to the entry log.
"""

from __future__ import annotations

import mmap
from array import array
from enum import IntEnum
from typing import Final

from bookkeeper.codec import chain_crcs, record_places
from bookkeeper.errors import check
from bookkeeper.seams import Buffer
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.entry_log.entry_log_file import Usage
from bookkeeper.storage.index.entry_index import place
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, GroupHeader, padded

_PADDING = memoryview(bytes(BLOCK))


class GroupState(IntEnum):
    """How far a group has come. It only moves down this list."""

    COLLECTING = 0
    """It takes records."""
    CLOSED = 1
    """It takes no more records and waits for its turn."""
    WRITING = 2
    """It has its number and its place in the journal, and is being written there."""
    DURABLE = 3
    """It is synced in the journal. Its waiters may be answered."""
    LOGGED = 4
    """It is in the entry log, too. Nobody reads it from memory any more."""


# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_COLLECTING: Final = GroupState.COLLECTING


class GroupBuffer:
    """Page-aligned memory with a view on it, re-used from group to group."""

    __slots__ = ("capacity", "memory", "view")

    def __init__(self, capacity: int) -> None:
        self.capacity = -(-capacity // BLOCK) * BLOCK
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # only a way to aligned memory (P1 is about files)
        self.memory = mmap.mmap(-1, self.capacity, flags=private)
        self.view = memoryview(self.memory)


class PendingGroup:
    """One group. Its records can be read from memory until it is in the entry log."""

    __slots__ = (
        "buffer",
        "file_bytes",
        "file_id",
        "file_offset",
        "flags",
        "header",
        "lazy_waiters",
        "log_id",
        "log_offset",
        "logged_waiters",
        "records",
        "seconds",
        "sequence",
        "size",
        "state",
        "usage",
        "waiters",
    )

    def __init__(self, buffer: GroupBuffer, log_id: int, log_offset: int) -> None:
        self.buffer = buffer
        self.size = 0
        """Bytes of records."""
        self.records = 0
        self.log_id, self.log_offset = log_id, log_offset
        """Where the first record will lie."""
        self.sequence = self.file_id = self.file_offset = self.file_bytes = self.flags = 0
        """Its number, its place and its size in the journal: given by the group sequence when it is written."""
        self.state = _COLLECTING
        """Written by the group sequence alone."""
        self.header: bytes | None = None
        self.waiters: list[Done] = []
        """Called when the group is durable."""
        self.lazy_waiters: list[Done] = []
        """Called then, too, behind the waiters; they start nothing."""
        self.logged_waiters: list[Done] = []
        """Called when the group is in the entry log, too."""
        self.seconds = 0.0
        """How long its writes took."""
        self.usage: Usage = {}

    @property
    def data(self) -> memoryview:
        """The records."""
        return self.buffer.view[GROUP_HEADER : GROUP_HEADER + self.size]

    def room_for(self, size: int) -> bool:
        return GROUP_HEADER + self.size + size <= self.buffer.capacity

    def add_run(self, ledger_id: int, records: Buffer, begin: int, ends: array[int], i0: int, i1: int) -> array[int]:
        """Take the records ``i0 .. i1 - 1``, which begin at ``begin`` in ``records``. Those that were built where they
        belong in this group's memory are not copied.

        Returns:
            their places (array('q')).
        """
        end, before = ends[i1 - 1], self.size
        self._take(records, begin, end)
        self.records += i1 - i0
        self._count(ledger_id, end - begin, i1 - i0)
        base = place(self.log_id, self.log_offset + before)
        return record_places(ends, i0, i1, begin, base - begin)

    def _take(self, records: Buffer, begin: int, end: int) -> None:
        """Take ``records[begin:end]`` to the end of this group's."""
        view, at = self.buffer.view, GROUP_HEADER + self.size
        if records is not view:
            view[at : at + end - begin] = memoryview(records)[begin:end]
        elif begin != at:
            check(False, "K9", f"records that were built at {begin} are to be taken at {at}")
        self.size += end - begin

    def add_record(self, ledger_id: int, data: bytes, *, outlives: bool = False) -> int:
        """Take one whole record; its place.

        Args:
            outlives: it must stay when everything else of its ledger goes.
        """
        before, self.size = self.size, self.size + len(data)
        self.buffer.view[GROUP_HEADER + before : GROUP_HEADER + self.size] = data
        self.records += 1
        self._count(ledger_id, len(data), 1)
        return place(self.log_id, self.log_offset + before)

    def _count(self, ledger_id: int, size: int, records: int) -> None:
        if (row := self.usage.get(ledger_id)) is None:
            self.usage[ledger_id] = [size, records]
        else:
            row[0] += size
            row[1] += records

    def holds(self, log_id: int, offset: int) -> bool:
        return log_id == self.log_id and self.log_offset <= offset < self.log_offset + self.size

    def follows(self, before: PendingGroup) -> bool:
        """Whether there is no hole in the entry logs between the group before it and this one."""
        if self.log_id == before.log_id:
            return self.log_offset == before.log_offset + before.size
        return self.log_id > before.log_id and self.log_offset == BLOCK

    # -- while it is read from memory: see ``reads/unwritten`` --------------------------------------------

    @property
    def name(self) -> str:
        return f"the memory of group {self.sequence}"

    def record_from(self, offset: int) -> memoryview:
        """From a record at ``offset`` of the log on. Valid until the loop's next turn."""
        return self.buffer.view[GROUP_HEADER + offset - self.log_offset : GROUP_HEADER + self.size]

    def read(self, offset: int, size: int) -> bytes:
        """The bytes from ``offset`` of the log on, at most ``size``."""
        return bytes(self.record_from(offset)[:size])

    def seal(self, sequence: int, durable_below: int) -> int:
        """Write header and padding into the buffer; how many bytes to write. Idempotent: a retry writes the same."""
        size, end = padded(self.size), GROUP_HEADER + self.size
        if self.header is None:
            chain = chain_crcs(self.buffer.view, GROUP_HEADER, end)
            header = GroupHeader(
                self.flags, self.file_id, sequence, self.file_offset, durable_below, self.records, self.size, chain
            )
            self.header = header.encode()
            self.buffer.view[:GROUP_HEADER] = self.header
            self.buffer.view[end:size] = _PADDING[: size - end]
        return size
