"""What an application holds to read a stream: records one by one, in batches, or as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from segments.arguments import check_timeout
from segments.position import Position
from segments.read.batches.record_batch import EntrySlice
from segments.read.fetch.fetcher import StreamFetcher
from segments.read.fetch.reader_state import Lag, ReaderCondition, ReaderState, lag_at
from segments.read.options import DEFAULT_OPTIONS, Parts, ReadOptions
from segments.read.places.locator import Locator
from segments.read.reader_front import ReaderFront
from segments.read.source.stream_source import StreamSource
from segments.record import Gap, StoredRecord
from segments.seek import Seek


class Reader(ReaderFront):
    """Reads a stream of this process's cluster."""

    __slots__ = ("_busy", "_fetcher", "_last_append_ms", "_locator", "_source")

    def __init__(
        self,
        source: StreamSource,
        locator: Locator,
        start: Seek,
        options: ReadOptions = DEFAULT_OPTIONS,
        *,
        parts: Callable[[], Parts] | None = None,
    ) -> None:
        self._source = source
        self._locator = locator
        self._fetcher = StreamFetcher(source, locator, start, options, parts)
        super().__init__(self._fetcher.machine.ready, options.on_gap)
        self._busy = False
        self._last_append_ms: int | None = None

    # -- what it says -------------------------------------------------------------------------------------

    @property
    def position(self) -> Position:
        """Where the next record is, or directly behind the last one that was handed out."""
        if self._ready:
            item = self._ready.first
            return item.first if isinstance(item, Gap) else item.entry.position(item.a)
        return self._fetcher.machine.position

    @property
    def caught_up(self) -> bool:
        """Whether everything that was confirmed, as far as this reader knows, was handed out."""
        return self._fetcher.machine.caught_up and not self._ready

    @property
    def ended(self) -> bool:
        """Whether no record follows: the stop was reached, or a sealed stream's end, or any end without ``follow``."""
        return self._fetcher.machine.ended and not self._ready

    async def lag(self) -> Lag:
        """How far this reader is behind the stream's end. Raises: StreamNotFoundError, StreamUnavailableError."""
        place = self.position if self._ready else self._fetcher.machine.place
        return await lag_at(self._source, self._locator, place, self._last_append_ms)

    async def state(self) -> ReaderState:
        """Whether this reader is idle, because nothing is written, or stuck, because something fails. It asks.

        Raises: StreamNotFoundError: the stream was deleted.
        """
        fetcher = self._fetcher
        condition = ReaderCondition(
            self._source, fetcher.feed, self.position, self.caught_up, self.ended, fetcher.quiet_since
        )
        return await condition.look()

    # -- reading ------------------------------------------------------------------------------------------

    async def next(self, timeout: float | None = None) -> StoredRecord | Gap | None:
        """The next record. None: it did not come within ``timeout`` seconds, or there is none (``ended`` tells).

        Raises:
            PositionTruncatedError, StreamGapError: records are missing here, and ``on_gap`` is ``"raise"``.
            StreamNotFoundError: the stream was deleted. ReaderIdleError. StreamUnavailableError, StreamMetadataError:
            call again. StreamClosedError.
        """
        while True:
            if not self._ready and not await self._fill(timeout):
                return None
            item = self._ready.first
            if isinstance(item, Gap):
                if self._pass_gap(item):
                    return item
                continue
            entry, slot = self._ready.take_one()
            self._last_append_ms = entry.append_ms
            return entry.record(slot)

    async def seek(self, seek: Seek) -> None:
        """Go on elsewhere. Nothing that was fetched before is handed out afterwards."""
        await self._fetcher.seek(seek)
        self._last_append_ms = None

    async def close(self) -> None:
        """Close the reader. A read that waits raises StreamClosedError. Idempotent."""
        await self._fetcher.close()

    # -- handing out --------------------------------------------------------------------------------------

    @property
    def _stream_name(self) -> str:
        return self._source.name

    def _hand_out(self, slices: Sequence[EntrySlice]) -> None:
        self._last_append_ms = slices[-1].entry.append_ms

    async def _fill(self, timeout: float | None) -> bool:
        """Fetch something to hand out. False: nothing within ``timeout``, or nothing follows."""
        check_timeout(timeout)
        if self._busy:
            raise RuntimeError(f"two tasks read from one reader of stream {self._source.name} at the same time")
        self._busy = True
        try:
            return await self._fetcher.fetch(timeout)
        finally:
            self._busy = False
