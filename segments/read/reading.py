"""Everything that reads one stream: readers, places, counts, splits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from segments.position import EARLIEST, LATEST, Position
from segments.read.locator import FindCursor, Locator
from segments.read.options import Parts, ReaderOptions, ReadOptions
from segments.read.reader import Reader
from segments.read.splits import StreamRange, split
from segments.read.stream_source import StreamSource
from segments.record import StoredRecord
from segments.seek import Seek

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from segments.chain import StreamRecord


class StreamReading:
    """Reads one stream, for all its readers in this process."""

    __slots__ = ("locator", "source")

    def __init__(self, client: BookKeeper, record: StreamRecord, find_cursor: FindCursor) -> None:
        self.source = StreamSource(client, record)
        self.locator = Locator(self.source, find_cursor)

    def read(
        self, start: Seek = EARLIEST, *, parts: Callable[[], Parts] | None = None, **options: Unpack[ReaderOptions]
    ) -> Reader:
        """A reader. It opens nothing before its first read. Raises: StreamConfigError."""
        return Reader(self.source, self.locator, start, ReadOptions(**options), parts=parts)

    async def count(self, start: Seek = EARLIEST, stop: Seek = LATEST) -> int:
        """How many records there are from ``start`` up to, and not including, ``stop``. Raises: as find."""
        first = await self.locator.seq_no(await self.locator.find(start))
        if stop == LATEST:
            return max(0, (await self.locator.end()).seq_no - first)
        return max(0, await self.locator.seq_no(await self.locator.find(stop)) - first)

    async def first(self) -> StoredRecord | None:
        """The first record; None if there is none. Raises: StreamUnavailableError, StreamGapError."""
        async with self.read() as reader:
            record = await reader.next()
            assert record is None or isinstance(record, StoredRecord), "a gap is raised"
            return record

    async def last(self) -> StoredRecord | None:
        """The last confirmed record; None if there is none. Raises: StreamUnavailableError."""
        return await self.locator.last()

    async def tail_position(self) -> Position:
        """The position directly behind the last confirmed record. Raises: StreamUnavailableError."""
        return (await self.locator.end()).position

    async def splits(self, start: Seek = EARLIEST, stop: Seek = LATEST, *, target: int) -> list[StreamRange]:
        """Cut what is between ``start`` and ``stop`` into about ``target`` ranges of about equal size, for scans side
        by side. Raises: as find."""
        chain = await self.source.chain.current(fresh=True)
        end = await self.locator.end(chain)
        first, last = await self.locator.find(start), await self.locator.find(stop)
        return split(chain, first, min(last, end.position), end.seq_no, end.position.entry - 1, target)
