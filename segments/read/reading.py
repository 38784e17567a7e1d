"""Everything that reads one stream: readers, positions, counts, splits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Unpack

from segments.arguments import checked_seek
from segments.error_translation import worded
from segments.errors import StreamMetadataError, StreamUnavailableError
from segments.position import EARLIEST, LATEST, Position
from segments.read.fetch.reader_state import Activity, Lag, idle_reason, lag_at
from segments.read.options import Parts, ReaderOptions, ReadOptions
from segments.read.positions.locator import FindCursor, Locator, StreamEnd
from segments.read.positions.splits import StreamRange, split
from segments.read.reader import Reader
from segments.read.source.known_part import KnownPart, chain_between
from segments.read.source.segment_entries import SegmentEntries
from segments.read.source.stream_source import StreamSource
from segments.record import StoredRecord
from segments.seek import Seek

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from bookkeeper.client.known import KnownLedger
    from segments.chain import StreamChain, StreamHead


KNOWN_MAX: Final = 1000
"""Of so many ledgers the metadata travel with a part: about 200 kB."""


class StreamReading:
    """Reads one stream, for all its readers in this process."""

    __slots__ = ("_ledgers", "locator", "source")

    def __init__(
        self,
        client: BookKeeper,
        node: StreamHead,
        find_cursor: FindCursor,
        known: KnownPart | None = None,
        *,
        pinned: bool = False,
    ) -> None:
        self.source = StreamSource(client, node, known, pinned=pinned)
        self.locator = Locator(self.source, find_cursor)
        self._ledgers: dict[int, KnownLedger] = {}
        """Closed ledgers, as last asked for."""

    def read(
        self, start: Seek = EARLIEST, *, parts: Callable[[], Parts] | None = None, **options: Unpack[ReaderOptions]
    ) -> Reader:
        """A reader. It opens nothing before its first read. Raises: StreamConfigError, SeekFormatError."""
        return Reader(self.source, self.locator, checked_seek(start), ReadOptions(**options), parts=parts)

    async def count(self, start: Seek = EARLIEST, stop: Seek = LATEST) -> int:
        """How many records there are from ``start`` up to, and not including, ``stop``. Raises: as find."""
        first = await self.locator.seq_no(await self.locator.find(start))
        if stop == LATEST:
            return max(0, (await self.locator.end()).seq_no - first)
        return max(0, await self.locator.seq_no(await self.locator.find(stop)) - first)

    async def last(self) -> StoredRecord | None:
        """The last confirmed record; None if there is none. Raises: StreamUnavailableError."""
        return await self.locator.last()

    async def end(self) -> StreamEnd:
        """The end of the stream now: a position, and the number that comes next. Raises: StreamUnavailableError."""
        return await self.locator.end()

    async def seq_no(self, place: Seek) -> int:
        """The number of the first record at or behind a position; at the end, the number that comes next. Raises: as
        find."""
        return await self.locator.seq_no(await self.locator.find(place))

    async def lag(self, place: Seek, last_append_ms: int | None = None) -> Lag:
        """How far a reader at ``place``, wherever it runs, is behind the stream's end. ``last_append_ms``: when the
        record before its place was appended.

        Raises: StreamNotFoundError, StreamUnavailableError, CursorNotFoundError.
        """
        return await lag_at(self.source, self.locator, place, last_append_ms)

    async def activity(self, place: Seek) -> tuple[Activity, str]:
        """What a reader at ``place``, wherever it runs, can be doing, and why, in a sentence: it reads the next record
        if there is one. Raises: StreamNotFoundError, CursorNotFoundError."""
        try:
            chain = await self.source.chain.current(fresh=True)
        except StreamMetadataError as error:
            return Activity.STUCK, f"the metadata store does not answer: {error}"
        limit_s = self.source.client.services.config.request_timeout_ms / 1000
        try:
            async with asyncio.timeout(limit_s):
                lag = await self.lag(place)
        except (StreamUnavailableError, TimeoutError) as error:
            return Activity.STUCK, f"the bookies do not answer: {error or 'no answer in time'}"
        if not lag.records:
            return Activity.IDLE, idle_reason(chain)
        async with self.read(place, on_gap="yield", read_ahead_bytes=1) as reader:
            try:
                found = await reader.next(limit_s)
            except StreamUnavailableError as error:
                return Activity.STUCK, f"the next record cannot be read: {error}"
            if found is None and not reader.ended:
                return Activity.STUCK, f"bookies have not given the next entry for {limit_s:g} s"
        return Activity.READING, "there are records to hand out"

    async def view(self) -> StreamReading:
        """The stream as it is now: whatever is asked of the view is answered from there, without another question to
        the metadata store where the stream's open segment, or a segment of an earlier ``known()``, tells it.

        Raises: as end.
        """
        source = self.source
        chain = await source.chain.current(fresh=True)
        ledgers = dict(self._ledgers)
        if (opened := chain.open_segment) is not None:
            async with SegmentEntries(source, opened) as entries:
                ledgers[opened.ledger_id] = entries.known
        part = await self._part(chain, ledgers)
        view = StreamReading(source.client, source.node, self.locator.find_cursor, part, pinned=True)
        view._ledgers = self._ledgers
        return view

    async def known(self, start: Position, stop: Position) -> KnownPart:
        """What a reader elsewhere must know to read from ``start`` to ``stop`` without asking the metadata store. Of
        more than ``KNOWN_MAX`` segments it is left to ask for the ledgers of the later ones.

        Raises: StreamUnavailableError.
        """
        chain = chain_between(await self.source.chain.current(fresh=True), start, stop)
        ledgers: dict[int, KnownLedger] = {}
        for segment in chain.recent[:KNOWN_MAX]:
            if (ledger := self._ledgers.get(segment.ledger_id)) is None:
                async with SegmentEntries(self.source, segment) as entries:
                    ledger = entries.known
            ledgers[segment.ledger_id] = ledger
        self._ledgers.clear()
        self._ledgers |= {
            each.ledger_id: ledgers[each.ledger_id] for each in chain.recent[:KNOWN_MAX] if not each.is_open
        }
        return await self._part(chain, ledgers)

    async def _part(self, chain: StreamChain, ledgers: Mapping[int, KnownLedger]) -> KnownPart:
        source = self.source
        with worded(f"asking where the bookies of stream {source.name} are", source.name):
            cluster = await source.client.known_cluster(ledgers.values())
        return KnownPart(source.name, source.stream_id, chain, ledgers, cluster)

    async def find(self, seek: Seek) -> Position:
        """The position that a seek names. Raises: as :meth:`Locator.find`."""
        return await self.locator.find(seek)

    async def splits(self, start: Seek = EARLIEST, stop: Seek = LATEST, *, target: int) -> list[StreamRange]:
        """Cut what is between ``start`` and ``stop`` into about ``target`` ranges of about equal size, for scans side
        by side. Raises: as find."""
        chain = await self.source.chain.current(fresh=True)
        end = await self.locator.end(chain)
        first, last = await self.locator.find(start), await self.locator.find(stop)
        return split(chain, first, min(last, end.position), end.seq_no, end.position.entry - 1, target)
