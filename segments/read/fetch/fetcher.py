"""Fetches a stream's records: from a position on, across segments, to the end or for ever.

A fetcher has at most one ledger open. New segments are found by the watch of the stream's node, which is also read
periodically. Read-ahead is bounded in bytes.

    begin --> enter a segment --> read it --> at its confirmed end: wait for entries
                 ^                   |
                 |                   v
                 +--- the next one, once the ledger is closed and the node lists the segment as completed

A fetch that is cancelled, or times out, loses nothing: the next one continues at the same record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final

from segments.chain import StreamChain, StreamSegment
from segments.errors import StreamClosedError
from segments.position import EARLIEST, LATEST, Position
from segments.read.fetch.fetch_machine import FetchMachine, NoSegment
from segments.read.fetch.reader_state import idle_error, wait_deadline
from segments.read.options import Parts, ReadOptions
from segments.read.positions.locator import Locator
from segments.read.source.segment_feed import BrokenEntry, SegmentDeletedError, SegmentFeed
from segments.read.source.stream_source import StreamSource
from segments.seek import AtCursor, Seek

CROWDED_IDLE_S: Final = 1.0
"""With many streams followed, a ledger without news for so many seconds is closed until there is some."""

IDLE_CHECK_FACTOR: Final = 10
"""An idle ledger is checked without news so many times less often than an open one."""


class IdleLedger:
    """A followed ledger that is not open, because it has no news. One long poll at one bookie and two watches of
    metadata remain, so that one process can follow ten thousand streams. It notices what comes after the confirmed end
    to which ``feed`` was read. Close it."""

    __slots__ = ("_chain", "_news", "_quiet", "_waiter")

    def __init__(self, source: StreamSource, feed: SegmentFeed, look_s: float) -> None:
        self._chain = source.chain
        self._news = False
        self._waiter: asyncio.Future[None] | None = None
        """Of the present wait. A wait that ends by time or cancellation cancels it, so each has its own."""
        handle = feed.handle
        self._quiet = source.client.quiet_ledgers.watch(
            handle.id,
            handle.metadata,
            feed.next_entry - 1,
            self._on_news,
            asyncio.get_running_loop().time() + IDLE_CHECK_FACTOR * look_s,
        )

    @property
    def has_news(self) -> bool:
        """Whether there is a reason to open the ledger again."""
        return self._news or self._chain.is_stale

    def wait(self, until: float) -> Awaitable[None]:
        """Wait until there is news, or the loop's time is ``until``."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._chain.changed_or(self._waiter, until)

    def close(self) -> None:
        """Stop waiting for news. Idempotent."""
        self._quiet.close()

    def _on_news(self) -> None:
        self._news = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class StreamFetcher:
    """Fetches for one reader. ``parts`` is called at each beginning and chooses the records to hand out; None: all."""

    __slots__ = (
        "_chain",
        "_choose_parts",
        "_closed",
        "_following",
        "_idle",
        "_last_news",
        "_locator",
        "_options",
        "_source",
        "feed",
        "machine",
    )

    def __init__(
        self,
        source: StreamSource,
        locator: Locator,
        start: Seek,
        options: ReadOptions,
        parts: Callable[[], Parts] | None = None,
    ) -> None:
        self._source = source
        self._locator = locator
        self._options = options
        self._choose_parts = parts
        self.machine = FetchMachine(start)
        """What was fetched, and the next position."""
        self._chain: StreamChain | None = None
        """The stream's node as this fetcher last used it."""
        self._idle: IdleLedger | None = None
        self._closed = False
        self._following = False
        self._last_news: float | None = None
        self.feed: SegmentFeed | None = None
        """The segment that is read now."""

    @property
    def quiet_since(self) -> float | None:
        """The loop's time at which something came last, or the first fetch began; None before that."""
        return self._last_news

    async def fetch(self, timeout: float | None) -> bool:
        """Make something ready. False: nothing came within ``timeout`` seconds, or nothing follows.

        Raises:
            StreamNotFoundError, ReaderIdleError, StreamUnavailableError, StreamMetadataError, StreamClosedError.
        """
        loop = asyncio.get_running_loop()
        until = inf if timeout is None else loop.time() + timeout
        if not self._following:
            self._ensure_open()
            self._following = True
            self._source.chain.acquire()
        if self._last_news is None:
            self._last_news = loop.time()
        machine = self.machine
        while not machine.ready:
            self._ensure_open()
            if machine.ended:
                return False
            if machine.seek is not None:
                await self._begin(machine.seek)
                continue
            if self._idle is not None:
                if not await self._wait_idle(self._idle, until):
                    return False
                continue
            chain = await self._source.chain.current()
            if chain is not self._chain:
                self._chain = chain
                if machine.is_truncated(chain):
                    await self._pass_truncated(chain)
                    continue
            if self.feed is None:
                more = await self._enter_segment(chain, until)
            else:
                more = await self._read_segment(self.feed, until)
            if not more:
                return False
        self._last_news = loop.time()
        return True

    async def seek(self, seek: Seek) -> None:
        """Continue at another position. What is ready is dropped."""
        self._ensure_open()
        await self._leave_segment()
        self.machine.restart(seek)

    async def close(self) -> None:
        """Stop. A fetch that waits raises StreamClosedError. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self.machine.ready.clear()
        await self._leave_segment()
        if self._following:
            self._following = False
            self._source.chain.wake()
            self._source.chain.release()

    # -- steps ----------------------------------------------------------------------------------------------

    async def _begin(self, seek: Seek) -> None:
        """Find where to begin and to stop."""
        options, stop = self._options, self.machine.stop
        cursor_seq_no: int | None = None
        if stop is None and isinstance(options.stop, Position) and EARLIEST < options.stop < LATEST:
            stop = options.stop
        elif options.stop is not None and stop is None and options.stop != LATEST:
            stop = await self._locator.find(options.stop)
        if isinstance(seek, Position) and EARLIEST < seek < LATEST:
            position = seek
        elif seek == EARLIEST and (known := self._source.chain.known) is not None:
            position = known.first_position
        elif isinstance(seek, AtCursor):
            cursor_seq_no, position = await self._locator.find_cursor(seek.name)
        else:
            position = await self._locator.find(seek)
        parts = None if self._choose_parts is None else self._choose_parts()
        self.machine.begin(position, stop=stop, parts=parts, cursor_seq_no=cursor_seq_no)
        self._chain = None

    async def _pass_truncated(self, chain: StreamChain) -> None:
        """The stream was truncated beyond this reader's position: report a gap and continue at the beginning."""
        missing = self.machine.missing_before(chain)
        if missing is None:
            missing = await self._locator.count_hidden(chain, self.machine.position)
        await self._leave_segment()
        self.machine.pass_truncated(chain, missing)

    async def _enter_segment(self, chain: StreamChain, until: float) -> bool:
        """Open the segment of the next record. False: there is none, and none came in time."""
        segment = self.machine.next_segment(chain)
        if isinstance(segment, NoSegment):
            return segment is NoSegment.CONTINUE or await self._wait_for_chain(chain, until)
        handle = await self._source.open_segment(segment)
        if handle is None:
            await self._on_ledger_deleted(segment)
            return True
        self.feed = SegmentFeed(
            self._source,
            segment,
            handle,
            self.machine.position.entry,
            ahead_bytes=self._options.read_ahead_bytes,
            patience_s=self._options.patience_s,
        )
        self.machine.entered(segment)
        return True

    async def _wait_for_chain(self, chain: StreamChain, until: float) -> bool:
        """There is no segment to read now. Wait for one, or end."""
        self.machine.on_confirmed_end(follows=self._options.follow and not chain.sealed)
        if self.machine.ended:
            return True
        loop = asyncio.get_running_loop()
        if loop.time() >= until:
            return False
        look = loop.time() + self._options.look_s
        await self._source.chain.changed(self._deadline(min(until, look)))
        self._check_idle()
        if loop.time() >= look:
            self._source.chain.invalidate()
        return True

    async def _read_segment(self, feed: SegmentFeed, until: float) -> bool:
        """Take the segment's next run. False: nothing new came in time."""
        try:
            run = await feed.run()
            if run is None:
                return await self._at_end_of_feed(feed, until)
        except SegmentDeletedError:
            await self._on_ledger_deleted(feed.segment)
            return True
        if isinstance(run, BrokenEntry):
            self.machine.on_broken(run.entry, run.kind, run.why)
        else:
            earlier = self.machine.on_run(feed.segment.number, run.first, run.payloads, feed.next_entry)
            if earlier is not None:
                feed.restart(earlier)
        return True

    async def _at_end_of_feed(self, feed: SegmentFeed, until: float) -> bool:
        """Everything confirmed was taken: go to the next segment, wait, or end."""
        segment = feed.segment
        if feed.has_ended:
            return await self._leave_ended(segment, until)
        loop, options = asyncio.get_running_loop(), self._options
        if not options.follow:
            before = feed.confirmed
            await feed.refresh_end()
            if feed.confirmed == before and not feed.has_ended:
                self.machine.report_broken()
                self.machine.on_confirmed_end(follows=False)
            return True
        self.machine.on_confirmed_end(follows=True)
        if self.machine.report_broken():
            return True
        if loop.time() >= until:
            return False
        assert self._last_news is not None
        crowded = self._source.is_crowded and feed.next_entry > 0
        rest_at = self._last_news + (min(CROWDED_IDLE_S, options.rest_after_s) if crowded else options.rest_after_s)
        if loop.time() >= rest_at:
            self._idle = IdleLedger(self._source, feed, options.look_s)
            await self._close_feed()
        elif not await feed.wait(self._deadline(min(until, rest_at))):
            self._check_idle()
        return True

    async def _wait_idle(self, idle: IdleLedger, until: float) -> bool:
        """Wait for news of an idle ledger. False: none came in time."""
        if idle.has_news:
            self._leave_idle()
            return True
        if asyncio.get_running_loop().time() >= until:
            return False
        await idle.wait(self._deadline(until))
        if not idle.has_news:
            self._check_idle()
        return True

    def _leave_idle(self) -> None:
        idle, self._idle = self._idle, None
        if idle is not None:
            idle.close()

    async def _leave_ended(self, segment: StreamSegment, until: float) -> bool:
        """The segment's ledger is closed and read. The segment is finished once the node lists it as completed."""
        chain = await self._source.chain.current()
        now = chain.find(segment.number)
        if now is not None and now.is_open:
            chain = await self._source.chain.current(fresh=True)
            now = chain.find(segment.number)
        if now is not None and now.is_open:
            self.machine.report_broken()
            return len(self.machine.ready) > 0 or await self._wait_for_chain(chain, until)
        self.machine.on_end(segment, now)
        await self._leave_segment()
        return True

    async def _on_ledger_deleted(self, segment: StreamSegment) -> None:
        """The ledger of a segment does not exist."""
        await self._leave_segment()
        chain = await self._source.chain.current(fresh=True)
        if self.machine.on_ledger_deleted(segment, chain):
            await self._wait_for_chain(chain, asyncio.get_running_loop().time() + self._options.look_s)
        else:
            self._chain = None

    async def _leave_segment(self) -> None:
        self._leave_idle()
        await self._close_feed()

    async def _close_feed(self) -> None:
        self.machine.leave()
        feed, self.feed = self.feed, None
        if feed is not None:
            await feed.close()

    def _deadline(self, until: float) -> float:
        return wait_deadline(until, self._last_news, self._options.idle_error_s)

    def _check_idle(self) -> None:
        now = asyncio.get_running_loop().time()
        error = idle_error(self._source.name, self.machine.position, now, self._last_news, self._options.idle_error_s)
        if error is not None:
            self._last_news = now
            raise error

    def _ensure_open(self) -> None:
        if self._closed:
            raise StreamClosedError(f"this reader of stream {self._source.name} is closed", stream=self._source.name)
