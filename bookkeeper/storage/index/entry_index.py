"""The places of a ledger's entries: 8 bytes an entry.

A *place* is ``log id << 40 | offset`` of the record in its entry log; 0 means "not here" (log ids begin at 1). New
places go to the tail in memory. A checkpoint freezes the tail, writes it to an index segment, and replaces it by
*extents* of up to 512 places, which are read back through a cache.

The newest place wins: the tail's, then a stray's, then the frozen tail's, then that of the extents from the last to the
first. A 0 in one of them says nothing: an older one may have the place.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from bookkeeper.codec import scatter

LOG_SHIFT = 40
OFFSET_MASK = (1 << LOG_SHIFT) - 1
PAGE = 512
"""The most places in one extent."""

_GAP = 4096
"""The tail fills holes of up to so many entries with zeros. Entries further away are strays."""


def place(log_id: int, offset: int) -> int:
    return log_id << LOG_SHIFT | offset


def unbroken(places: array[int], begin: int, end: int) -> array[int]:
    """``places[begin:end]`` up to the first 0."""
    run = places[begin:end]
    return run if 0 not in run else run[: run.index(0)]


@dataclass(frozen=True, slots=True)
class Extent:
    """Places of entries ``first .. first + count - 1`` in an index segment."""

    ledger_id: int
    first: int
    count: int
    present: int
    """How many of the places are not 0."""
    segment: int
    offset: int
    crc: int

    @property
    def end(self) -> int:
        return self.first + self.count


class IndexTail:
    """Places in memory: a dense stretch, and strays that lie elsewhere."""

    __slots__ = ("first", "places", "strays")

    def __init__(self) -> None:
        self.first = 0
        self.places: array[int] = array("q")
        self.strays: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self.places or self.strays)

    @property
    def end(self) -> int:
        return self.first + len(self.places)

    def get(self, entry_id: int) -> int:
        at = entry_id - self.first
        if 0 <= at < len(self.places) and (found := self.places[at]):
            return found
        return self.strays.get(entry_id, 0) if self.strays else 0

    def extend(self, first: int, places: array[int]) -> None:
        """Add the places of consecutive entries from ``first`` on."""
        end = self.first + len(self.places)
        if first != end and not self._reach(first):
            for at, value in enumerate(places):
                self.put(first + at, value)
            return
        self.places.extend(places)

    def scatter(self, entry_ids: array[int], i0: int, i1: int, places: array[int]) -> None:
        """Add the places of the entries ``entry_ids[i0:i1]``, which ascend and have holes."""
        first, last = entry_ids[i0], entry_ids[i1 - 1]
        if last - first < 8 * (i1 - i0) + PAGE and self._reach(first):
            origin = len(self.places)
            self.places.frombytes(bytes(8 * (last - first + 1)))
            scatter(self.places, first - origin, entry_ids, i0, i1, places)
            return
        for at in range(i0, i1):
            self.put(entry_ids[at], places[at - i0])

    def put(self, entry_id: int, value: int) -> None:
        at = entry_id - self.first
        if 0 <= at < len(self.places):
            self.places[at] = value
        elif self._reach(entry_id):
            self.places.append(value)
        else:
            self.strays[entry_id] = value

    def _reach(self, entry_id: int) -> bool:
        """Fill the tail with zeros up to ``entry_id``, if the hole is short. Returns whether it was."""
        if not self.places:
            self.first = entry_id
            return True
        if not 0 <= (gap := entry_id - self.end) <= _GAP:
            return False
        self.places.frombytes(bytes(8 * gap))
        return True

    def runs(self) -> Iterator[tuple[int, array[int]]]:
        """What a checkpoint writes: (first entry, at most 512 places), older before newer."""
        stretch: array[int] = array("q")
        first = 0
        for entry_id in sorted(self.strays):
            if not stretch or entry_id != first + len(stretch) or len(stretch) == PAGE:
                if stretch:
                    yield first, stretch
                stretch, first = array("q"), entry_id
            stretch.append(self.strays[entry_id])
        if stretch:
            yield first, stretch
        for at in range(0, len(self.places), PAGE):
            yield self.first + at, self.places[at : at + PAGE]

    def absorb(self, newer: IndexTail) -> None:
        """Add everything of ``newer``, which wins."""
        for entry_id, value in newer.strays.items():
            self.put(entry_id, value)
        for at, value in enumerate(newer.places):
            if value:
                self.put(newer.first + at, value)


class LedgerIndex:
    """The places of one ledger. Used on the loop's thread."""

    __slots__ = ("_extents", "_firsts", "_in_order", "frozen", "tail")

    def __init__(self) -> None:
        self.tail = IndexTail()
        self.frozen: IndexTail | None = None
        """The tail that a checkpoint is writing. It does not change."""
        self._extents: list[Extent] = []
        self._firsts: array[int] = array("q")
        self._in_order = True
        """Whether the extents ascend and do not overlap, so that bisect finds the only candidate."""

    @property
    def extents(self) -> tuple[Extent, ...]:
        return tuple(self._extents)

    @property
    def plain(self) -> bool:
        """Whether no entry has two places, so that a run of old places cannot hide a newer one."""
        frozen, tail = self.frozen, self.tail
        end = self._extents[-1].end if self._extents else 0
        if not self._in_order or tail.strays or (frozen is not None and frozen.strays):
            return False
        if frozen is not None and frozen.places:
            if frozen.first < end:
                return False
            end = frozen.end
        return not tail.places or tail.first >= end

    @property
    def settled(self) -> tuple[array[int], list[Extent]] | None:
        """First entries and extents, if the ledger has only extents and they do not overlap; otherwise None.

        The caller must not change or keep them.
        """
        if self.tail or self.frozen or not self._in_order or not self._extents:
            return None
        return self._firsts, self._extents

    def get_recent(self, entry_id: int) -> int:
        """The entry's place if it is in memory, else 0."""
        found = self.tail.get(entry_id)
        if not found and self.frozen is not None:
            found = self.frozen.get(entry_id)
        return found

    def recent_run(self, entry_id: int, limit: int) -> array[int]:
        """Places of consecutive entries from ``entry_id`` on, as far as one piece of memory has them."""
        if not self.plain:
            return array("q", (found,)) if (found := self.get_recent(entry_id)) else array("q")
        for tail in (self.tail, self.frozen):
            if tail is None:
                continue
            at = entry_id - tail.first
            if 0 <= at < len(tail.places) and (run := unbroken(tail.places, at, at + limit)):
                return run
        return array("q")

    def candidates(self, entry_id: int) -> Iterator[Extent]:
        """Extents that may hold the entry, newest first."""
        if self._in_order:
            at = bisect_right(self._firsts, entry_id) - 1
            if at >= 0 and entry_id < self._extents[at].end:
                yield self._extents[at]
            return
        for extent in reversed(self._extents):
            if extent.first <= entry_id < extent.end:
                yield extent

    def add(self, extents: list[Extent]) -> None:
        """Add the extents of a new segment, older before newer."""
        for extent in extents:
            if self._extents and extent.first < self._extents[-1].end:
                self._in_order = False
            self._extents.append(extent)
            self._firsts.append(extent.first)

    def replace(self, merged: set[int], extents: list[Extent]) -> None:
        """Replace the newest extents, those of the segments ``merged``, by ``extents``."""
        kept = [extent for extent in self._extents if extent.segment not in merged]
        self._extents, self._firsts, self._in_order = [], array("q"), True
        self.add(kept)
        self.add(extents)

    def adopt(self, merged: set[int], extents: list[Extent], *, covers_frozen: bool) -> None:
        """A checkpoint is complete: replace the extents of the segments ``merged`` by the ledger's new ``extents``.

        Args:
            covers_frozen: the new extents hold the frozen tail.
        """
        if merged:
            self.replace(merged, extents)
        else:
            self.add(extents)
        if covers_frozen:
            self.frozen = None

    def freeze(self) -> IndexTail:
        """Hand the tail to a checkpoint and begin a new one."""
        assert self.frozen is None, "checkpoints are serialised (K14)"
        self.frozen, self.tail = self.tail, IndexTail()
        return self.frozen

    def thaw(self) -> None:
        """The checkpoint failed: take the frozen tail back."""
        if self.frozen is not None:
            self.frozen.absorb(self.tail)
            self.tail, self.frozen = self.frozen, None


class PageCache:
    """A cache of extents' places. It drops the least recently used."""

    def __init__(self, pages: int) -> None:
        self._limit = pages
        self._pages: OrderedDict[tuple[int, int], array[int]] = OrderedDict()

    def get(self, extent: Extent) -> array[int] | None:
        key = (extent.segment, extent.offset)
        if (page := self._pages.get(key)) is not None:
            self._pages.move_to_end(key)
        return page

    def put(self, extent: Extent, page: array[int]) -> None:
        self._pages[extent.segment, extent.offset] = page
        if len(self._pages) > self._limit:
            self._pages.popitem(last=False)
