"""Some records that follow each other, as a reader hands them out: still in their entries, until someone looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, overload

from segments.entries import StoredEntry
from segments.position import Position
from segments.record import Gap, StoredRecord


class EntrySlice(NamedTuple):
    """The records of an entry from slot ``a`` up to, and not including, slot ``b``."""

    entry: StoredEntry
    a: int
    b: int


class RecordBatch(Sequence[StoredRecord]):
    """A sequence of records. Columns (``values()``, ``keys()``, ``arrow()``) are made without the records."""

    __slots__ = ("_count", "_records", "gap", "slices")

    def __init__(self, slices: Sequence[EntrySlice] = (), gap: Gap | None = None) -> None:
        self.slices = tuple(slices)
        self.gap = gap
        """What is missing directly before the first record; only a reader with ``on_gap="yield"`` tells."""
        self._count = sum(s.b - s.a for s in self.slices)
        self._records: list[StoredRecord] | None = None

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        """Whether there are records, or a gap."""
        return self._count > 0 or self.gap is not None

    def __iter__(self) -> Iterator[StoredRecord]:
        return iter(self.records())

    @overload
    def __getitem__(self, index: int) -> StoredRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[StoredRecord]: ...
    def __getitem__(self, index: int | slice) -> StoredRecord | list[StoredRecord]:
        return self.records()[index]

    def records(self) -> list[StoredRecord]:
        """The records. They are made once."""
        if self._records is None:
            self._records = list(chain.from_iterable(s.entry.records(s.a, s.b) for s in self.slices))
        return self._records

    def values(self) -> list[bytes]:
        """The records' values."""
        return list(chain.from_iterable(s.entry.values(s.a, s.b) for s in self.slices))

    def keys(self) -> list[bytes | None]:
        """The records' keys; None where there is none."""
        return list(chain.from_iterable(s.entry.keys(s.a, s.b) for s in self.slices))

    def txids(self) -> list[int | None]:
        """The records' transaction ids; None where there is none."""
        return list(chain.from_iterable(s.entry.txids(s.a, s.b) for s in self.slices))

    def headers(self) -> list[Mapping[str, bytes]]:
        """The records' headers."""
        return list(chain.from_iterable(s.entry.headers(s.a, s.b) for s in self.slices))

    def arrow(self, columns: tuple[str, ...] | None = None) -> list[Any]:
        """The records as one ``pyarrow.RecordBatch`` for each of ``slices``; they share the entries' memory. With
        ``columns`` they have these alone.

        Raises:
            MissingLibraryError: pyarrow is not installed.
        """
        return [s.entry.arrow(s.a, s.b, columns=columns) for s in self.slices]

    def joined_arrow(self, columns: tuple[str, ...] | None = None) -> Any:
        """The same as a single ``pyarrow.RecordBatch``. It is a copy where there are several of ``slices``; there is
        one at least. Raises as ``arrow``."""
        from segments.entries.arrow import joined_batch

        return joined_batch([s.entry.part(s.a, s.b) for s in self.slices], columns)

    def in_parts(self, size: int) -> Iterator[RecordBatch]:
        """The records, without the gap, in batches of whole slices with about ``size`` bytes of unpacked entries at
        most; an entry that is larger comes alone."""
        taken: list[EntrySlice] = []
        left = size
        for each in self.slices:
            left -= each.entry.unpacked_size
            if left < 0 and taken:
                yield RecordBatch(taken)
                taken, left = [], size - each.entry.unpacked_size
            taken.append(each)
        if taken:
            yield RecordBatch(taken)

    @property
    def size(self) -> int:
        """About the bytes of the records, as stored."""
        return sum(s.entry.size * (s.b - s.a) // s.entry.count for s in self.slices)

    @property
    def first(self) -> Position:
        """Where the first record stands. Raises IndexError if there is none."""
        return self.slices[0].entry.position(self.slices[0].a)

    @property
    def last(self) -> Position:
        """Where the last record stands. Raises IndexError if there is none."""
        return self.slices[-1].entry.position(self.slices[-1].b - 1)

    @property
    def first_seq_no(self) -> int:
        """The number of the first record. Raises IndexError if there is none."""
        return self.slices[0].entry.first_seq_no + self.slices[0].a

    @property
    def end_seq_no(self) -> int:
        """The number behind the last record. Raises IndexError if there is none."""
        return self.slices[-1].entry.first_seq_no + self.slices[-1].b

    def __repr__(self) -> str:
        where = f" from {self.first} to {self.last}" if self.slices else ""
        return f"<{self._count} records{where}{f', after {self.gap}' if self.gap is not None else ''}>"
