"""What a fetcher has fetched and a reader has not handed out: slices of entries, and gaps, in order (pure)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import StoredEntry
from segments.position import Position
from segments.read.batches.entry_sequence import Item
from segments.read.batches.record_batch import Slice, sliced
from segments.read.options import Parts
from segments.record import Gap

_NEW: Final[Any] = tuple.__new__

_NOTHING: Final[deque[Slice | Gap]] = deque()
"""Shared by all queues that are empty, and never changed: of ten thousand readers that wait, none needs its own."""


class ReadyQueue:
    """Slices and gaps. Runs go in and out whole where they may."""

    __slots__ = ("_gaps", "_items", "records")

    def __init__(self) -> None:
        self._items = _NOTHING
        self._gaps = 0
        self.records = 0
        """How many records are in it."""

    def __len__(self) -> int:
        return len(self._items)

    @property
    def first(self) -> Slice | Gap:
        """What comes next. Raises IndexError if there is nothing."""
        return self._items[0]

    def add_entries(self, entries: Sequence[StoredEntry | LoneEntries]) -> None:
        """All records of these entries."""
        self._own().extend([sliced(entry, 0, entry.count) for entry in entries])
        self.records += sum([entry.count for entry in entries])

    def add(self, items: Iterable[Slice | Gap]) -> None:
        """These items."""
        own = self._own()
        for item in items:
            own.append(item)
            if isinstance(item, Gap):
                self._gaps += 1
            else:
                self.records += item.b - item.a

    def add_wanted(self, items: Sequence[Item], begin: Position, stop: Position | None, parts: Parts | None) -> bool:
        """Add of ``items`` what is from ``begin`` up to ``stop``, and of that ``parts``. Returns whether the stop was
        reached."""
        whole = [item for item in items if not isinstance(item, Gap)]
        is_plain = len(whole) == len(items) and parts is None and stop is None
        if is_plain and (not whole or whole[0].position(0) >= begin):
            self.add_entries(whole)
            return False
        for item in items:
            if isinstance(item, Gap):
                self.add([item])
                continue
            a = min(_slot_at(item, begin), item.count)
            b, stopped = item.count, False
            if stop is not None:
                b = min(b, _slot_at(item, stop))
                stopped = (item.segment, item.entry + _ids(item) - 1) >= stop[:2]
            if a < b and parts is None:
                self.add([sliced(item, a, b)])
            elif a < b and parts is not None:
                base = item.first_seq_no
                self.add(sliced(item, x - base, y - base) for x, y in parts(base + a, base + b))
            if stopped:
                return True
        return False

    def take_gap(self) -> Gap:
        """Take the gap that comes next."""
        gap = self._drop()
        assert isinstance(gap, Gap)
        self._gaps -= 1
        return gap

    def take_one(self) -> tuple[StoredEntry | LoneEntries, int]:
        """Take one record: its entry and its slot. A gap must not come next."""
        item = self._items[0]
        assert not isinstance(item, Gap)
        entry, a, b = item
        self.records -= 1
        if a + 1 == b:
            self._drop()
        else:
            self._items[0] = _NEW(type(item), (entry, a + 1, b))
        return entry, a

    def take(self, records: int, size: float, *, at_least_one: bool) -> list[Slice]:
        """Take up to ``records`` records of about ``size`` bytes together, up to the next gap."""
        if not self._gaps and self.records <= records and size == float("inf"):
            taken: list[Slice] = list(self._items)  # type: ignore[arg-type]  # no gap is in it
            self.clear()
            return taken
        taken = []
        while self._items and records > 0:
            item = self._items[0]
            if isinstance(item, Gap):
                break
            each = max(1, item.entry.size // item.entry.count)
            fits = 1 << 62 if size == float("inf") else int(size // each)
            count = min(item.b - item.a, records, max(fits, 1 if at_least_one else 0))
            if count <= 0:
                break
            at_least_one = False
            taken.append(sliced(item.entry, item.a, item.a + count))
            records -= count
            size -= each * count
            self.records -= count
            if item.a + count == item.b:
                self._drop()
            else:
                self._items[0] = sliced(item.entry, item.a + count, item.b)
        return taken

    def put_back(self, slices: Sequence[Slice]) -> None:
        """Let slices that were taken come next again."""
        self._own().extendleft(reversed(slices))
        self.records += sum(item.b - item.a for item in slices)

    def _own(self) -> deque[Slice | Gap]:
        if self._items is _NOTHING:
            self._items = deque()
        return self._items

    def _drop(self) -> Slice | Gap:
        item = self._items.popleft()
        if not self._items:
            self._items = _NOTHING
        return item

    def clear(self) -> None:
        """Forget everything."""
        self._items = _NOTHING
        self._gaps = self.records = 0

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert not _NOTHING
        slices = [item for item in self._items if not isinstance(item, Gap)]
        assert self._gaps == len(self._items) - len(slices)
        assert self.records == sum(item.b - item.a for item in slices)
        assert all(item.a < item.b <= item.entry.count for item in slices)


def _ids(item: StoredEntry | LoneEntries) -> int:
    """How many ids of entries it has, from its own on."""
    return item.count if isinstance(item, LoneEntries) else 1


def _slot_at(item: StoredEntry | LoneEntries, place: Position) -> int:
    """The first slot at or behind this place, which may be more than there are."""
    if item.segment != place.segment:
        return 0 if item.segment > place.segment else item.count
    before = place.entry - item.entry
    if isinstance(item, LoneEntries):
        return max(0, before + (place.slot > 0))
    return max(0, place.slot) if before == 0 else 0 if before < 0 else item.count
