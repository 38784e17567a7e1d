"""The places of a ledger's entries: 8 bytes an entry.

A *place* is ``log id << 40 | offset`` of the record in its entry log; 0 means "not here" (log ids begin at 1). New
places go to the tail in memory. A checkpoint freezes the tail, writes it to an index segment, and replaces it by
*extents* of up to 512 places, which are read back through a cache.

The newest place wins: the tail's, then a stray's, then that of a moved page, then the frozen tail's in the same order,
then that of the extents from the last to the first. A 0 in one of them says nothing: an older one may have the place.

Compaction moves entries. It replaces whole *pages*: the places of the entries ``512 * n .. 512 * n + 511``, with
everything that was known of them. No extent reaches over the border of a page, so the extents of a moved page take the
place of older ones, and what is in order stays in order. (Extents of older versions may reach over a border.)
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from bookkeeper.codec import scatter, unbroken

LOG_SHIFT = 40
OFFSET_MASK = (1 << LOG_SHIFT) - 1
PAGE = 512
"""The most places in one extent."""

_GAP = 4096
"""The tail fills holes of up to so many entries with zeros. Entries further away are strays."""

_HOLES = 8
"""So many zeros for each place there may be, beside those of one gap: a client chooses the ids of its entries, and a
few bytes of each must not take 32 KiB here. Of striped ledgers with more holes than that the rest are strays."""


def place(log_id: int, offset: int) -> int:
    return log_id << LOG_SHIFT | offset


def overlay(page: array[int], origin: int, first: int, places: array[int]) -> None:
    """Write ``places``, those of the entries from ``first`` on, into ``page``, whose first entry is ``origin``. What
    lies outside is left out; a 0 replaces nothing."""
    begin, end = max(origin, first), min(origin + len(page), first + len(places))
    if begin >= end:
        return
    part = places[begin - first : end - first]
    if 0 not in part or not any(page[begin - origin : end - origin]):
        page[begin - origin : end - origin] = part
        return
    for at, value in enumerate(part, begin - origin):
        if value:
            page[at] = value


def trimmed(first: int, places: array[int]) -> tuple[int, array[int]]:
    """``places`` without the zeros at both ends, and the entry that they now begin with."""
    data = places.tobytes()
    low = (len(data) - len(data.lstrip(b"\0"))) // 8
    high = -(-len(data.rstrip(b"\0")) // 8)
    return first + low, places[low:high]


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
    """Places in memory: a dense stretch, strays that lie elsewhere, and pages whose entries were moved."""

    __slots__ = ("_holes", "first", "moved", "places", "strays")

    def __init__(self) -> None:
        self.first = 0
        self.places: array[int] = array("q")
        self._holes = 0
        """Zeros in it, when they were filled in."""
        self.strays: dict[int, int] = {}
        self.moved: dict[int, array[int]] = {}
        """By number, as they were after the move: nothing older need be looked at. What came since is in ``places``
        and ``strays``, or in those of a newer tail."""

    def __bool__(self) -> bool:
        return bool(self.places or self.strays or self.moved)

    @property
    def end(self) -> int:
        return self.first + len(self.places)

    def get(self, entry_id: int) -> int:
        at = entry_id - self.first
        if 0 <= at < len(self.places) and (found := self.places[at]):
            return found
        if self.strays and (found := self.strays.get(entry_id, 0)):
            return found
        if self.moved and (page := self.moved.get(entry_id // PAGE)) is not None:
            return page[entry_id % PAGE]
        return 0

    def get_dense(self, entry_id: int) -> int:
        """The place of an entry of the dense stretch, which nothing hides; else 0."""
        at = entry_id - self.first
        return self.places[at] if 0 <= at < len(self.places) else 0

    def dense(self, first: int, count: int) -> array[int]:
        """The places of consecutive entries from ``first`` on, as far as they lie in the dense stretch."""
        at = first - self.first
        return self.places[at : at + count] if at >= 0 else array("q")

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
        holes = last - first + 1 - (i1 - i0)
        if holes < 7 * (i1 - i0) + PAGE and self._may_fill(holes, i1 - i0) and self._reach(first):
            origin = len(self.places)
            self.places.frombytes(bytes(8 * (last - first + 1)))
            self._holes += holes
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
        if not 0 <= (gap := entry_id - self.end) <= _GAP or not self._may_fill(gap, 1):
            return False
        self.places.frombytes(bytes(8 * gap))
        self._holes += gap
        return True

    def _may_fill(self, holes: int, places: int) -> bool:
        """Whether so many zeros may be filled in for so many places."""
        return self._holes + holes <= _GAP + _HOLES * (len(self.places) - self._holes + places)

    def runs(self) -> Iterator[tuple[int, array[int]]]:
        """What a checkpoint writes: (first entry, places of one page), older before newer."""
        for number in sorted(self.moved):
            yield trimmed(number * PAGE, self.moved[number])
        stretch: array[int] = array("q")
        first = 0
        for entry_id in sorted(self.strays):
            if not stretch or entry_id != first + len(stretch) or entry_id % PAGE == 0:
                if stretch:
                    yield first, stretch
                stretch, first = array("q"), entry_id
            stretch.append(self.strays[entry_id])
        if stretch:
            yield first, stretch
        at = 0
        while at < len(self.places):
            end = at + PAGE - (self.first + at) % PAGE
            first, places = trimmed(self.first + at, self.places[at:end])
            if places:
                yield first, places
            at = end

    def overlay_on(self, page: array[int], origin: int) -> None:
        """Write the tail's places, without moved ones, into ``page``, whose first entry is ``origin``."""
        if self.strays:
            for entry_id in range(origin, origin + len(page)):
                if found := self.strays.get(entry_id):
                    page[entry_id - origin] = found
        overlay(page, origin, self.first, self.places)

    def absorb(self, newer: IndexTail) -> None:
        """Add everything of ``newer``, which wins."""
        self.moved.update(newer.moved)
        for entry_id, value in newer.strays.items():
            self.put(entry_id, value)
        for at, value in enumerate(newer.places):
            if value:
                self.put(newer.first + at, value)


class LedgerIndex:
    """The places of one ledger. Used on the loop's thread."""

    __slots__ = ("_by_first", "_extents", "_firsts", "_in_order", "frozen", "tail")

    def __init__(self) -> None:
        self.tail = IndexTail()
        self.frozen: IndexTail | None = None
        """The tail that a checkpoint is writing. It does not change."""
        self._extents: list[Extent] = []
        self._firsts: array[int] = array("q")
        self._in_order = True
        """Whether the extents ascend and do not overlap, so that bisect finds the only candidate."""
        self._by_first: tuple[array[int], list[int]] | None = None
        """While they are not in order: first entries, ascending, and where in ``_extents`` each extent is."""

    @property
    def extents(self) -> tuple[Extent, ...]:
        return tuple(self._extents)

    @property
    def plain(self) -> bool:
        """Whether no entry has two places, so that a run of old places cannot hide a newer one."""
        frozen, tail = self.frozen, self.tail
        end = self._extents[-1].end if self._extents else 0
        if not self._in_order or tail.strays or tail.moved:
            return False
        if frozen is not None and (frozen.strays or frozen.moved):
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
        if not self.plain and not self.tail.get_dense(entry_id):
            return array("q", (found,)) if (found := self.get_recent(entry_id)) else array("q")
        for tail in (self.tail, self.frozen):
            if tail is None:
                continue
            at = entry_id - tail.first
            if 0 <= at < len(tail.places) and (run := unbroken(tail.places, at, min(at + limit, len(tail.places)))):
                return run
        return array("q")

    def candidate(self, entry_id: int) -> Extent | None:
        """The only extent that may hold the entry. None: see :meth:`candidates`."""
        if self._in_order:
            at = bisect_right(self._firsts, entry_id) - 1
            if at >= 0 and entry_id < (extent := self._extents[at]).end:
                return extent
        return None

    def candidates(self, entry_id: int) -> Iterator[Extent]:
        """Extents that may hold the entry, newest first."""
        if self._in_order:
            at = bisect_right(self._firsts, entry_id) - 1
            if at >= 0 and entry_id < self._extents[at].end:
                yield self._extents[at]
            return
        yield from reversed(self.overlapping(entry_id, entry_id + 1))

    def overlapping(self, begin: int, end: int) -> list[Extent]:
        """The extents with any of the entries ``begin .. end - 1``, older before newer."""
        if self._in_order:
            low = max(bisect_right(self._firsts, begin) - 1, 0)
            some = self._extents[low : bisect_left(self._firsts, end)]
        else:
            firsts, ages = self._sorted()
            low, high = bisect_right(firsts, begin - PAGE), bisect_left(firsts, end)
            some = [self._extents[age] for age in sorted(ages[low:high])]
        return [extent for extent in some if extent.end > begin]

    def _sorted(self) -> tuple[array[int], list[int]]:
        """See ``_by_first``."""
        if self._by_first is None:
            ages = sorted(range(len(self._extents)), key=self._firsts.__getitem__)
            self._by_first = array("q", [self._firsts[age] for age in ages]), ages
        return self._by_first

    def moved_page(self, number: int) -> array[int] | None:
        """A page whose entries were moved and that no checkpoint has covered yet; None: it was not."""
        found = self.tail.moved.get(number)
        if found is None and self.frozen is not None:
            found = self.frozen.moved.get(number)
        return found

    def add(self, extents: list[Extent]) -> None:
        """Add the extents of a new segment, older before newer."""
        self._by_first = None
        for extent in extents:
            if self._extents and extent.first < self._extents[-1].end:
                if self._in_order and self._fit_in(extent):
                    continue
                self._in_order = False
            self._extents.append(extent)
            self._firsts.append(extent.first)

    def _fit_in(self, extent: Extent) -> bool:
        """Put an extent among those that are in order: between them, or in the place of those that it covers and leaves
        nothing of. Returns whether that was possible."""
        low = bisect_left(self._firsts, extent.first)
        if low and self._extents[low - 1].end > extent.first:
            return False
        high = bisect_left(self._firsts, extent.end)
        if low < high and (extent.present < extent.count or self._extents[high - 1].end > extent.end):
            return False
        self._extents[low:high] = [extent]
        self._firsts[low:high] = array("q", [extent.first])
        return True

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
