"""Some records that follow each other, as a reader hands them out: still in their entries, until someone looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, overload

from segments.entries.arrow import joined_batch, record_batch
from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import StoredEntry
from segments.position import Position
from segments.record import Gap, StoredRecord


class EntrySlice(NamedTuple):
    """The records of an entry from slot ``a`` up to, and not including, slot ``b``."""

    entry: StoredEntry
    a: int
    b: int


class LoneSlice(NamedTuple):
    """The same of a run of lone entries."""

    entry: LoneEntries
    a: int
    b: int


Slice: TypeAlias = EntrySlice | LoneSlice


def sliced(entry: StoredEntry | LoneEntries, a: int, b: int) -> Slice:
    """These records of it."""
    return LoneSlice(entry, a, b) if isinstance(entry, LoneEntries) else EntrySlice(entry, a, b)


class RecordBatch(Sequence[StoredRecord]):
    """A sequence of records. Columns (``values()``, ``keys()``, ``arrow()``) are made without the records."""

    __slots__ = ("_count", "_entries", "_records", "_slices", "gap")

    def __init__(self, slices: Sequence[Slice] = (), gap: Gap | None = None) -> None:
        self._slices = tuple(slices)
        self._entries: tuple[EntrySlice, ...] | None = None
        self.gap = gap
        """What is missing directly before the first record; only a reader with ``on_gap="yield"`` tells."""
        self._count = sum([s.b - s.a for s in self._slices])
        self._records: list[StoredRecord] | None = None

    @property
    def slices(self) -> tuple[EntrySlice, ...]:
        """The entries with these records, each by itself. They are made once."""
        if self._entries is None:
            found: list[EntrySlice] = []
            for s in self._slices:
                if isinstance(s, EntrySlice):
                    found.append(s)
                else:
                    found += [EntrySlice(entry, 0, 1) for entry in s.entry.entries(s.a, s.b)]
            self._entries = tuple(found)
        return self._entries

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
            self._records = list(chain.from_iterable(s.entry.records(s.a, s.b) for s in self._slices))
        return self._records

    def values(self) -> list[bytes]:
        """The records' values."""
        return list(chain.from_iterable(s.entry.values(s.a, s.b) for s in self._slices))

    def keys(self) -> list[bytes | None]:
        """The records' keys; None where there is none."""
        return list(chain.from_iterable(s.entry.keys(s.a, s.b) for s in self._slices))

    def txids(self) -> list[int | None]:
        """The records' transaction ids; None where there is none."""
        return list(chain.from_iterable(s.entry.txids(s.a, s.b) for s in self._slices))

    def headers(self) -> list[Mapping[str, bytes]]:
        """The records' headers."""
        return list(chain.from_iterable(s.entry.headers(s.a, s.b) for s in self._slices))

    def arrow(self, columns: tuple[str, ...] | None = None) -> list[Any]:
        """The records as one ``pyarrow.RecordBatch`` for each entry, which shares its memory; entries of one value and
        nothing else that follow each other have one together, which is a copy. With ``columns`` they have these alone.

        Raises:
            MissingLibraryError: pyarrow is not installed.
        """
        return [record_batch(s.entry, s.a, s.b, columns=columns) for s in self._slices]

    def joined_arrow(self, columns: tuple[str, ...] | None = None) -> Any:
        """The same as a single ``pyarrow.RecordBatch``. It is a copy where there are several of ``slices``; there is
        one at least. Raises as ``arrow``."""
        return joined_batch([s.entry.part(s.a, s.b) for s in self._slices], columns)

    def in_parts(self, size: int) -> Iterator[RecordBatch]:
        """The records, without the gap, in batches of whole slices with about ``size`` bytes of unpacked entries at
        most; an entry that is larger comes alone."""
        taken: list[Slice] = []
        left = size
        for each in self._slices:
            if isinstance(each, EntrySlice):
                whole: list[tuple[Slice, int]] = [(each, each.entry.unpacked_size)]
            else:
                run = each.entry
                whole = [(LoneSlice(run, a, b), run.share(a, b)) for a, b in run.parts(each.a, each.b, size)]
            for part, taking in whole:
                left -= taking
                if left < 0 and taken:
                    yield RecordBatch(taken)
                    taken, left = [], size - taking
                taken.append(part)
        if taken:
            yield RecordBatch(taken)

    @property
    def size(self) -> int:
        """About the bytes of the records, as stored."""
        return sum(s.entry.size * (s.b - s.a) // s.entry.count for s in self._slices)

    @property
    def first(self) -> Position:
        """Where the first record stands. Raises IndexError if there is none."""
        return self._slices[0].entry.position(self._slices[0].a)

    @property
    def last(self) -> Position:
        """Where the last record stands. Raises IndexError if there is none."""
        return self._slices[-1].entry.position(self._slices[-1].b - 1)

    @property
    def first_seq_no(self) -> int:
        """The number of the first record. Raises IndexError if there is none."""
        return self._slices[0].entry.first_seq_no + self._slices[0].a

    @property
    def end_seq_no(self) -> int:
        """The number behind the last record. Raises IndexError if there is none."""
        return self._slices[-1].entry.first_seq_no + self._slices[-1].b

    def __repr__(self) -> str:
        where = f" from {self.first} to {self.last}" if self._slices else ""
        return f"<{self._count} records{where}{f', after {self.gap}' if self.gap is not None else ''}>"
