"""What the open segment holds, as far as it is durable: counted while it is written, or by a recovery."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from segments.chain import SegmentContents
from segments.entries.sections import EntryBatch


@dataclass(slots=True)
class ContentsTally:
    """The growing contents of a segment; see :class:`segments.chain.SegmentContents` for the units."""

    records: int = 0
    bytes: int = 0
    last_entry: int = -1
    last: tuple[int, int] | None = None
    first_txid: int | None = None
    last_txid: int | None = None
    first_append_ms: int | None = None
    last_append_ms: int | None = None
    min_event_ms: int | None = None
    max_event_ms: int | None = None
    announces: bool = field(default=False, kw_only=True)
    """Whether it holds the epoch of a producer that no entry before it says."""

    def add_entry(self, entry: int, size: int) -> None:
        """An entry of this many bytes is durable; the entries before it were counted."""
        self.last_entry = entry
        self.bytes += size

    def add_records(
        self,
        count: int,
        append_ms: int,
        txids: tuple[int | None, int | None] = (None, None),
        events: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """The entry that was counted last holds so many records. ``txids`` are the first and the last, ``events`` the
        least and the greatest event time."""
        if not count:
            return
        self.records += count
        self.last = (self.last_entry, count - 1)
        if self.first_append_ms is None:
            self.first_append_ms = append_ms
        self.last_append_ms = append_ms
        if txids[1] is not None:
            if self.first_txid is None:
                self.first_txid = txids[0]
            self.last_txid = txids[1]
        if events[0] is not None and events[1] is not None:
            self.min_event_ms = events[0] if self.min_event_ms is None else min(self.min_event_ms, events[0])
            self.max_event_ms = events[1] if self.max_event_ms is None else max(self.max_event_ms, events[1])

    def contents(self, footer_entry: int | None = None) -> SegmentContents:
        """As the chain lists it."""
        return SegmentContents(
            self.records,
            self.bytes,
            self.last_entry,
            self.last,
            self.first_txid,
            self.last_txid,
            self.first_append_ms,
            self.last_append_ms,
            self.min_event_ms,
            self.max_event_ms,
            footer_entry,
        )


def announces(batches: Iterable[EntryBatch]) -> bool:
    """Whether an entry says which epoch a producer has, without a record in it."""
    return any(batch.producer is not None and not batch.records for batch in batches)
