"""Where entries live: the places that a ledger's index knows, in memory and in the pages of index segments.

A page that is not in memory is never waited for here: :class:`PageMissing` says which one it is, and
:meth:`EntryPlaces.load` has the read worker read it. This module only looks. A ledger's index is written by
``ledger_updates``, by checkpoints, and by a start.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.codec import unbroken
from bookkeeper.errors import CorruptionError
from bookkeeper.ids import EntryId
from bookkeeper.seams import Disk, File
from bookkeeper.storage.base.results import AvailabilityRun
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.index.entry_index import PAGE, Extent, PageCache, overlay
from bookkeeper.storage.index.index_segment import decode_page, segment_name
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.ledgers.unknowns import Unknowns

Held = Mapping[Extent, "array[int]"]
"""The index pages that one read has waited for."""
NONE_HELD: Final[Held] = {}


class PageMissing(Exception):
    """An index page must be read first."""

    def __init__(self, extent: Extent, file: File) -> None:
        self.extent, self.file = extent, file


@dataclass(slots=True)
class EntryPlaces:
    """Owned by the loop's thread."""

    disk: Disk
    directory: str
    pages: PageCache
    workers: StorageWorkers
    unknowns: Unknowns
    segments: dict[int, File] = field(default_factory=dict)
    """Open index segments."""

    # -- one entry, and many ------------------------------------------------------------------------------

    def find(self, state: LedgerDescriptor, entry_id: int, held: Held = NONE_HELD) -> int:
        """The place of an entry; 0 if it is not here.

        Raises:
            PageMissing: an index page must be read first.
        """
        index = state.index
        if found := index.get_recent(entry_id):
            return found
        if (extent := index.candidate(entry_id)) is not None:
            return self.page(extent, held)[entry_id - extent.first]
        for extent in index.candidates(entry_id):
            if found := self.page(extent, held)[entry_id - extent.first]:
                return found
        return 0

    def run(self, state: LedgerDescriptor, first: int, limit: int, held: Held) -> array[int]:
        """Places of the entries from ``first`` on, up to ``limit`` or the first that is not here.

        Raises:
            PageMissing: not even the first is known without reading an index page.
        """
        places: array[int] = array("q")
        while len(places) < limit:
            entry_id = first + len(places)
            try:
                more = state.index.recent_run(entry_id, limit - len(places)) or self._page_run(state, entry_id, held)
            except PageMissing:
                if not places:
                    raise
                break  # the places found so far are an answer
            if not more:
                break
            places += more
        return places[:limit]

    def _page_run(self, state: LedgerDescriptor, entry_id: int, held: Held) -> array[int]:
        """Like ``recent_run``, but from index pages."""
        if not state.index.plain:
            return unbroken(self.whole_page(state, entry_id // PAGE, held), entry_id % PAGE, PAGE)
        for extent in state.index.candidates(entry_id):
            if run := unbroken(self.page(extent, held), entry_id - extent.first, extent.count):
                return run
        return array("q")

    def whole_page(self, state: LedgerDescriptor, number: int, held: Held = NONE_HELD) -> array[int]:
        """A copy of the places of the entries ``512 * number .. 512 * number + 511`` as they are now; 0: not here.

        Raises:
            PageMissing: an index page must be read first.
            CorruptionError, OSError: an index page cannot be read.
        """
        index, origin = state.index, PAGE * number
        if (moved := index.moved_page(number)) is not None:
            page = moved[:]
        else:
            page = array("q", bytes(8 * PAGE))
            for extent in index.overlapping(origin, origin + PAGE):
                overlay(page, origin, extent.first, self.page(extent, held))
        if index.frozen is not None:
            index.frozen.overlay_on(page, origin)
        index.tail.overlay_on(page, origin)
        return page

    def entries(self, state: LedgerDescriptor) -> list[AvailabilityRun]:
        """Which entries are here, ascending.

        Raises:
            CorruptionError, OSError: an index page cannot be read.
        """
        stretches: list[tuple[int, int]] = []
        for extent in state.index.extents:
            if extent.present == extent.count:
                stretches.append((extent.first, extent.end))
            else:
                stretches += _present(extent.first, self.page_blocking(extent))
        for tail in (state.index.frozen, state.index.tail):
            for first, places in tail.runs() if tail is not None else ():
                stretches += _present(first, places)
        runs: list[tuple[int, int]] = []
        for first, end in sorted(stretches):
            if runs and first <= runs[-1][1]:
                runs[-1] = runs[-1][0], max(end, runs[-1][1])
            else:
                runs.append((first, end))
        return [AvailabilityRun(EntryId(first), end - first) for first, end in runs]

    # -- index pages --------------------------------------------------------------------------------------

    def page(self, extent: Extent, held: Held = NONE_HELD) -> array[int]:
        """An index page, without waiting.

        Raises:
            PageMissing: the page must be read from the disk.
            CorruptionError, OSError: the page cannot be read.
        """
        page = self.pages.get(extent)
        if page is None and held:
            page = held.get(extent)
        if page is not None:
            return page
        if (file := self.segments.get(extent.segment)) is None:
            file = self.disk.open(f"{self.directory}/{segment_name(extent.segment)}", write=False)
            self.segments[extent.segment] = file
        data = file.pread_cached(8 * extent.count, extent.offset)
        if data is None:
            raise PageMissing(extent, file)
        try:
            page = decode_page(data, extent, file.path)
        except CorruptionError as error:
            self.unknowns.found_index_damage(error)
            raise
        self.pages.put(extent, page)
        return page

    def page_blocking(self, extent: Extent) -> array[int]:
        """An index page. Waits for the disk if necessary."""
        try:
            return self.page(extent)
        except PageMissing as missing:
            return decode_page(missing.file.pread(8 * extent.count, extent.offset), extent, missing.file.path)

    def load(
        self,
        missing: PageMissing,
        held: Held,
        again: Callable[[Held], None],
        failed: Callable[[BaseException | None], None],
    ) -> None:
        """Read the missing page, then call ``again`` with it and ``held``, which the cache may have dropped (V1)."""
        extent, file = missing.extent, missing.file

        def done(page: array[int] | None, error: BaseException | None) -> None:
            if isinstance(error, CorruptionError):
                self.unknowns.found_index_damage(error)
            if page is None:
                return failed(error)
            self.pages.put(extent, page)
            return again({**held, extent: page})

        self.workers.get("read").submit(
            lambda: decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path), done
        )

    def release_segments(self, segments: Iterable[int]) -> list[File]:
        """Stop reading these index segments. Returns their open files, to close after the reads in progress."""
        return [self.segments.pop(key) for key in segments if key in self.segments]

    def open_files(self) -> Iterable[File]:
        """The open files of index segments."""
        return self.segments.values()


def _present(first: int, places: array[int]) -> list[tuple[int, int]]:
    """The stretches (begin, end) of entries whose place is not 0."""
    if 0 not in places:
        return [(first, first + len(places))]
    return [(first + at, first + at + 1) for at, found in enumerate(places) if found]
