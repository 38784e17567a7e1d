"""Entries of one record that follow each other, read as one thing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from segments.codec import count_lone, lone_columns, lone_records, lone_values
from segments.entries.layout import APPEND_MS, APPEND_MS_AT
from segments.entries.stored_entry import RUN, StoredEntry, decode_entry
from segments.position import Position
from segments.record import NO_HEADERS, StoredRecord

FEWEST: Final = 2
"""A run has so many entries; one alone is a ``StoredEntry``."""


class LoneEntries:
    """Lone entries of one segment (see :mod:`segments.codec`), with consecutive ids and sequence numbers. Their
    checksums are right. Together they answer as one ``StoredEntry`` with as many records; slots are those of the run.
    """

    __slots__ = ("__dict__", "_base", "_payloads", "_run", "count", "entry", "first_seq_no", "segment")

    def __init__(self, payloads: list[bytes], segment: int, entry: int, first_seq_no: int, base: int) -> None:
        self._payloads = payloads
        self._base = base
        self._run: tuple[int, Sequence[StoredRecord]] = (0, ())
        self.segment: int = segment
        self.entry: int = entry
        """The id of the first."""
        self.first_seq_no: int = first_seq_no
        self.count: int = len(payloads)

    @classmethod
    def found(
        cls, payloads: Sequence[bytes], at: int, segment: int, entry: int, expected: int | None, base: int
    ) -> LoneEntries | None:
        """Those from ``payloads[at]``, which is ``entry``, on; None if there are fewer than two.

        Args:
            expected: the sequence number of the first; None: any.
            base: of the segment, as for ``decode_entry``.
        """
        if len(payloads) - at < FEWEST or not isinstance(payloads, list):
            return None
        if expected is not None and expected < base:
            return None
        count, seq_no = count_lone(payloads, at, -1 if expected is None else expected - base)
        if count < FEWEST:
            return None
        return cls(payloads[at : at + count], segment, entry, seq_no + base, base)

    @cached_property
    def size(self) -> int:
        """The bytes of the whole entries, as stored."""
        return sum(map(len, self._payloads))

    @property
    def unpacked_size(self) -> int:
        """The same: none of them is compressed."""
        return self.size

    def share(self, a: int, b: int) -> int:
        """The bytes of these entries, as stored."""
        return sum(map(len, self._payloads[a:b]))

    def appended_ms(self, slot: int) -> int:
        """When the record of this slot was put into its entry."""
        appended: int = APPEND_MS.unpack_from(self._payloads[slot], APPEND_MS_AT)[0]
        return appended

    def entries(self, a: int = 0, b: int | None = None) -> list[StoredEntry]:
        """The entries by themselves."""
        return [
            decode_entry(payload, self.segment, entry, self._base)
            for entry, payload in enumerate(self._payloads[a:b], self.entry + a)
        ]

    def position(self, slot: int) -> Position:
        """Where the record of this slot stands."""
        return Position(self.segment, self.entry + slot, 0)

    def records(self, a: int = 0, b: int | None = None) -> list[StoredRecord]:
        """The records themselves."""
        first = (self.segment, self.entry, self.first_seq_no)
        found: list[StoredRecord] = lone_records(
            self._payloads, *self._span(a, b), first, StoredRecord, Position, NO_HEADERS
        )
        return found

    def record(self, slot: int) -> StoredRecord:
        """The record of this slot. Quick for someone who takes one after the other."""
        first, records = self._run
        if not 0 <= slot - first < len(records):
            first = slot - slot % RUN
            records = self.records(first, first + RUN)
            self._run = first, records
        return records[slot - first]

    def values(self, a: int = 0, b: int | None = None) -> list[bytes]:
        """The values of the records."""
        return lone_values(self._payloads, *self._span(a, b))

    def keys(self, a: int = 0, b: int | None = None) -> list[bytes | None]:
        """None for each."""
        return [None] * len(range(*self._span(a, b)))

    def txids(self, a: int = 0, b: int | None = None) -> list[int | None]:
        """None for each."""
        return [None] * len(range(*self._span(a, b)))

    def headers(self, a: int = 0, b: int | None = None) -> list[Mapping[str, bytes]]:
        """None has any."""
        return [NO_HEADERS] * len(range(*self._span(a, b)))

    @cached_property
    def columns(self) -> tuple[bytes, bytes, bytes]:
        """All values and times as columns: see :func:`segments.codec.lone_columns`."""
        return lone_columns(self._payloads, 0, self.count)

    def part(self, a: int, b: int | None) -> tuple[LoneEntries, None, int, int]:
        """What ``joined_batch`` takes of them."""
        return (self, None, *self._span(a, b))

    def parts(self, a: int, b: int, size: int) -> Iterator[tuple[int, int]]:
        """The slots from ``a`` up to ``b``, in parts of about ``size`` bytes."""
        step = max(1, size * self.count // max(1, self.size))
        return ((at, min(b, at + step)) for at in range(a, b, step))

    def _span(self, a: int, b: int | None) -> tuple[int, int]:
        """The slots that there are of these."""
        a = min(a, self.count)
        return a, max(a, self.count if b is None else min(b, self.count))
