"""Finds positions in a stream: the position of a seek, the number of a position, the end.

The segment is found by the stream's node, the entry by the segment's footer, or without one by a binary search.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

from segments.arguments import checked_seek
from segments.chain import StreamChain, StreamSegment
from segments.entries.footer import SegmentFooter
from segments.entries.stored_entry import StoredEntry
from segments.errors import EntryCorruptError, PositionTruncatedError, StreamCorruptError
from segments.position import EARLIEST, LATEST, Position
from segments.read.positions.entry_search import EntrySearch
from segments.read.positions.seek_target import SearchKey, TargetEnd, TargetPosition, is_visible, seek_target
from segments.read.source.segment_entries import SegmentEntries
from segments.read.source.stream_source import StreamSource
from segments.record import StoredRecord, to_ms
from segments.seek import Ago, AtCursor, AtSeqNo, AtTime, AtTxId, Seek

_log = logging.getLogger(__name__)

FindCursor = Callable[[str], Awaitable[tuple[int, Position]]]
"""Finds where a cursor of this name stands: the number of the first record that it has not done, and the position."""


class StreamEnd(NamedTuple):
    """The end of a stream at one time."""

    position: Position
    """Directly behind the last confirmed record."""
    seq_no: int
    """The number that the next record gets: how many records there ever were."""


class Locator:
    """Finds positions in one stream."""

    __slots__ = ("_source", "find_cursor")

    def __init__(self, source: StreamSource, find_cursor: FindCursor) -> None:
        self._source = source
        self.find_cursor = find_cursor

    async def find(self, seek: Seek) -> Position:
        """The position of the first record that ``seek`` asks for; behind the last record if there is none.

        A position is returned as it is, and so is that of a cursor, also if it was truncated meanwhile. EARLIEST, and a
        position from which on no record was truncated, is the beginning that readers see, and LATEST the end.

        Raises:
            PositionTruncatedError: the position was truncated. CursorNotFoundError. StreamUnavailableError.
        """
        seek = checked_seek(seek)
        chain = await self._source.chain.current(fresh=True)
        match seek:
            case Position():
                if seek == LATEST:
                    return (await self.end(chain)).position
                if seek <= EARLIEST:
                    return chain.first_position
                return await self._visible(seek, chain)
            case AtCursor():
                return (await self.find_cursor(seek.name))[1]
            case AtSeqNo():
                return await self._search(chain, SearchKey.SEQ_NO, seek.seq_no)
            case AtTxId():
                return await self._search(chain, SearchKey.TXID, seek.txid)
            case AtTime():
                key = SearchKey.EVENT_TIME if seek.event else SearchKey.APPEND_TIME
                return await self._search(chain, key, to_ms(seek.time))
            case Ago():
                since = self._source.now_ms() - seek.age // timedelta(milliseconds=1)
                return await self._search(chain, SearchKey.APPEND_TIME, since)

    async def end(self, chain: StreamChain | None = None) -> StreamEnd:
        """The end of the stream now. Raises: StreamUnavailableError."""
        chain = chain or await self._source.chain.current(fresh=True)
        segment = chain.open_segment
        if segment is None:
            last = chain.last_position
            behind = chain.first_position if last is None else max(last.next, chain.first_position)
            return StreamEnd(behind, chain.records)
        async with SegmentEntries(self._source, segment) as entries:
            behind = Position(segment.number, entries.last_entry + 1, 0)
            return StreamEnd(max(behind, chain.first_position), await entries.end_seq_no())

    async def seq_no(self, position: Position) -> int:
        """The number of the first record at or behind ``position``; at the end, the number that comes next.

        Raises:
            PositionTruncatedError. StreamUnavailableError.
        """
        chain = await self._source.chain.current(fresh=True)
        if position == LATEST:
            return (await self.end(chain)).seq_no
        if position < chain.first_position:
            position = chain.first_position if position <= EARLIEST else await self._visible(position, chain)
        return await self._number_at(chain, position)

    async def count_hidden(self, chain: StreamChain, position: Position) -> int | None:
        """How many records from ``position`` on were truncated; None if that is unknown.

        Raises: StreamUnavailableError.
        """
        if chain.reads_on(position) is not None:
            return 0
        begins, segment = chain.begin_seq_no, chain.find(position.segment)
        if begins is None or segment is None:
            return None
        try:
            return max(0, begins - await self._number_at(chain, position))
        except (PositionTruncatedError, StreamCorruptError):
            return None

    async def _visible(self, position: Position, chain: StreamChain) -> Position:
        """The position, or the first one that readers see if no record from it on was truncated.

        Raises: PositionTruncatedError. StreamUnavailableError.
        """
        if position >= chain.first_position:
            return position
        if await self.count_hidden(chain, position) == 0:
            return chain.first_position
        raise self._truncated(position, chain)

    async def _number_at(self, chain: StreamChain, position: Position) -> int:
        """The number of the first record at or behind ``position``, in a segment that is listed, or at its end."""
        if position == chain.start and chain.start_seq_no is not None:
            return chain.start_seq_no
        segment = chain.from_number(position.segment)
        if segment is None:
            return chain.records
        if position <= segment.first:
            return segment.start_seq_no
        if (last := segment.last) is not None and position > last:
            return segment.start_seq_no + segment.records
        async with SegmentEntries(self._source, segment) as entries:
            for entry_id in range(position.entry, entries.last_entry + 1):
                try:
                    entry = await entries.header(entry_id)
                except EntryCorruptError:
                    continue
                return entry.first_seq_no + (min(position.slot, entry.count) if entry_id == position.entry else 0)
            return await entries.end_seq_no()

    async def entry_numbers(self, position: Position) -> tuple[int, int] | None:
        """Of the entry at ``position``: the number of its first record, and how many it has. None: there is no such
        entry, or it has no records. Raises: StreamUnavailableError, EntryCorruptError."""
        chain = await self._source.chain.current(fresh=True)
        segment = chain.find(position.segment)
        if segment is None or position < chain.first_position:
            return None
        async with SegmentEntries(self._source, segment) as entries:
            if not 0 <= position.entry <= entries.last_entry:
                return None
            entry = await entries.header(position.entry)
            return (entry.first_seq_no, entry.count) if entry.count else None

    async def last(self) -> StoredRecord | None:
        """The last confirmed record that readers see. Raises: StreamUnavailableError."""
        chain = await self._source.chain.current(fresh=True)
        first = chain.first_position
        for segment in reversed(chain.segments):
            if segment.number < first.segment:
                return None
            if not is_visible(segment, first):
                continue
            if segment.contents.last is not None:
                low = segment.contents.last[0]
            else:
                low = first.entry if segment.number == first.segment else 0
            async with SegmentEntries(self._source, segment) as entries:
                entry = await entries.last_with_records(low)
            if entry is not None:
                record = entry.records(entry.count - 1)[0]
                return record if record.position >= first else None
        return None

    async def _search(self, chain: StreamChain, key: SearchKey, target: int) -> Position:
        behind = 0
        while True:
            placed = seek_target(chain, key, target, behind=behind)
            if isinstance(placed, TargetPosition):
                return placed.position
            if isinstance(placed, TargetEnd):
                return (await self.end(chain)).position
            found = await self._search_segment(chain, placed.segment, key, target)
            if found is not None:
                return max(found, chain.first_position)
            behind = placed.segment.number

    async def _search_segment(
        self, chain: StreamChain, segment: StreamSegment, key: SearchKey, target: int
    ) -> Position | None:
        first = chain.first_position
        low = first.entry if segment.number == first.segment else 0
        async with SegmentEntries(self._source, segment) as entries:
            high = entries.last_entry if segment.contents.last is None else segment.contents.last[0]
            if (footer := await _footer(entries, segment)) is not None:
                low, high = _narrowed(footer, key, target, low, high)
            if key is SearchKey.EVENT_TIME:
                return await self._scan(entries, target, low, high, first)
            search = EntrySearch(target, low, high)
            looked: dict[int, StoredEntry] = {}
            while (probe := search.probe) is not None:
                try:
                    looked[probe] = entry = await (
                        entries.read(probe) if key is SearchKey.TXID else entries.header(probe)
                    )
                except EntryCorruptError:
                    search.on_entry(probe, None)
                else:
                    search.on_entry(probe, _greatest(entry, key))
            if search.found is None:
                return None
            entry = looked[search.found]
            return entry.position(_slot(entry, key, target))

    async def _scan(
        self, entries: SegmentEntries, target: int, low: int, high: int, first: Position
    ) -> Position | None:
        """The first record with an event time at or behind ``target``. Event times may fall, so all are looked at."""
        for entry_id in range(low, high + 1):
            try:
                entry = await entries.read(entry_id)
            except EntryCorruptError:
                continue
            for slot, event_ms in enumerate(entry.event_times_ms()):
                if event_ms is not None and event_ms >= target and entry.position(slot) >= first:
                    return entry.position(slot)
        return None

    def _truncated(self, position: Position, chain: StreamChain) -> PositionTruncatedError:
        return PositionTruncatedError(
            f"position {position} of stream {self._source.name} was truncated: the stream begins at "
            f"{chain.first_position}",
            stream=self._source.name,
            position=chain.first_position,
        )


async def _footer(entries: SegmentEntries, segment: StreamSegment) -> SegmentFooter | None:
    """The footer of a completed segment; None if it has none, or if that is damaged: it only saves reads."""
    if segment.contents.footer_entry is None:
        return None
    try:
        return SegmentFooter.decode((await entries.header(segment.contents.footer_entry)).payload, segment.base)
    except EntryCorruptError as error:
        _log.warning("segment %s is searched without its footer: %s", segment, error)
        return None


def _narrowed(footer: SegmentFooter, key: SearchKey, target: int, low: int, high: int) -> tuple[int, int]:
    """The entries that are left to search: from one row of the footer's index up to and with the next row's."""
    match key:
        case SearchKey.SEQ_NO:
            row = footer.entry_for_seq_no(target)
        case SearchKey.TXID:
            row = footer.entry_for_txid(target)
        case SearchKey.APPEND_TIME:
            row = footer.entry_for_append_time(target)
        case SearchKey.EVENT_TIME:
            row = footer.entry_for_event_time(target)
    if row is None:
        return low, high
    following = bisect_right(footer.index, row, key=lambda each: each.entry)
    if following < len(footer.index):
        high = min(high, footer.index[following].entry)
    low = max(low, row)
    return low, max(low, high)


def _greatest(entry: StoredEntry, key: SearchKey) -> int | None:
    """The greatest number in an entry; None if it has none."""
    if not entry.count:
        return None
    match key:
        case SearchKey.SEQ_NO:
            return entry.first_seq_no + entry.count - 1
        case SearchKey.TXID:
            return entry.last_txid
        case _:
            return entry.append_ms


def _slot(entry: StoredEntry, key: SearchKey, target: int) -> int:
    """The first record of an entry at or above ``target``; one is."""
    match key:
        case SearchKey.SEQ_NO:
            return max(0, target - entry.first_seq_no)
        case SearchKey.TXID:
            txids = entry.txids()
            if None not in txids:
                return bisect_left(txids, target)  # type: ignore[type-var]  # none is None
            return next(slot for slot, txid in enumerate(txids) if txid is not None and txid >= target)
        case _:
            return 0
