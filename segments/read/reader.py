"""Reads a stream of this process's cluster: what a reader is to an application, over a fetcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from segments.entries.lone_entries import LoneEntries
from segments.entries.stored_entry import StoredEntry
from segments.position import Position
from segments.read.batches.record_batch import Slice
from segments.read.fetch.fetcher import StreamFetcher
from segments.read.fetch.reader_state import Lag, ReaderCondition, ReaderState, lag_at
from segments.read.options import DEFAULT_OPTIONS, Parts, ReadOptions
from segments.read.positions.locator import Locator
from segments.read.reader_front import ReaderFront
from segments.read.source.stream_source import StreamSource
from segments.seek import Seek


class Reader(ReaderFront):
    """Reads a stream of this process's cluster."""

    __slots__ = ("_fetcher", "_locator", "_source")

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
        place = self.position if self._ready else self._fetcher.machine.resume_seek
        return await lag_at(self._source, self._locator, place, self._last_append_ms)

    async def state(self) -> ReaderState:
        """Whether this reader is idle, because nothing is written, or stuck, because something fails. It asks.

        Raises: StreamNotFoundError: the stream was deleted.
        """
        fetcher = self._fetcher
        condition = ReaderCondition(
            self._source, fetcher.feed, self.position, self.caught_up, self.ended, fetcher.quiet_since
        )
        return await condition.query()

    @property
    def _stream_name(self) -> str:
        return self._source.name

    @property
    def _next_position(self) -> Position:
        return self._fetcher.machine.position

    async def _fill(self, timeout: float | None) -> bool:
        return await self._fetcher.fetch(timeout)

    async def _go_to(self, seek: Seek) -> None:
        await self._fetcher.seek(seek)

    async def _end(self) -> None:
        await self._fetcher.close()

    def _hand_out(self, slices: Sequence[Slice]) -> None:
        last = slices[-1]
        self._last_append_ms = last.entry.appended_ms(last.b - 1)

    def _hand_out_one(self, entry: StoredEntry | LoneEntries, slot: int) -> None:
        self._last_append_ms = entry.appended_ms(slot)
