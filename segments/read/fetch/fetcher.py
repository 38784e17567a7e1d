"""Fetches a stream's records: from a position on, across segments, to the end or for ever.

A fetcher has at most one ledger open. It learns of new segments from the stream's node, which is watched, and looks
at it from time to time in any case. What it asks of bookies ahead of its caller is bounded in bytes.

    begin --> enter a segment --> read it --> at its confirmed end: wait for entries
                 ^                   |
                 |                   v
                 +--- go on behind it, once the ledger is closed and the record says completed

A fetch that is cancelled, or times out, loses nothing: the next one goes on at the same record.
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
from segments.read.fetch.reader_state import busy_until, idle_error
from segments.read.options import Parts, ReadOptions
from segments.read.positions.locator import Locator
from segments.read.source.segment_feed import BrokenEntry, SegmentFeed, SegmentGoneError
from segments.read.source.stream_source import StreamSource
from segments.seek import AtCursor, Seek

CROWDED_REST_S: Final = 1.0
"""Where many streams are followed, one in which nothing happened for so long rests."""

REST_LOOKS: Final = 10
"""A resting reader looks at its ledger by itself ten times less often than one that waits at an open one."""


class IdleLedger:
    """A ledger that is not open, because nothing happens in it: one long poll at one bookie and two watches of metadata
    remain, so that one process can follow ten thousand streams. From the moment at which ``feed`` was read to its
    confirmed end. Close it."""

    __slots__ = ("_chain", "_quiet", "_told", "_waiter")

    def __init__(self, source: StreamSource, feed: SegmentFeed, look_s: float) -> None:
        self._chain = source.chain
        self._told = False
        self._waiter: asyncio.Future[None] | None = None
        """Of the present wait. A wait that ends by time or cancellation cancels it, so each has its own."""
        handle = feed.handle
        self._quiet = source.client.quiet_ledgers.watch(
            handle.id,
            handle.metadata,
            feed.next_entry - 1,
            self._tell,
            asyncio.get_running_loop().time() + REST_LOOKS * look_s,
        )

    @property
    def is_over(self) -> bool:
        """Whether there is a reason to open the ledger again."""
        return self._told or self._chain.is_doubtful

    def wait(self, until: float) -> Awaitable[None]:
        """Wait until the rest is over, or the loop's time is ``until``."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._chain.changed_or(self._waiter, until)

    def close(self) -> None:
        """End the rest. Idempotent."""
        self._quiet.close()

    def _tell(self) -> None:
        self._told = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class StreamFetcher:
    """Fetches for one reader. ``parts`` is asked once per beginning which records to hand out; None: all."""

    __slots__ = (
        "_chain",
        "_closed",
        "_following",
        "_last_news",
        "_locator",
        "_make_parts",
        "_options",
        "_resting",
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
        self._make_parts = parts
        self.machine = FetchMachine(start)
        """What was fetched, and where it goes on."""
        self._chain: StreamChain | None = None
        """The record as this fetcher has last looked at it."""
        self._resting: IdleLedger | None = None
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
            self._source.chain.use()
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
            if self._resting is not None:
                if not await self._rest_on(self._resting, until):
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
        """Go on elsewhere. What is ready is dropped."""
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
            self._source.chain.let_go()

    # -- where ----------------------------------------------------------------------------------------------

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
        parts = None if self._make_parts is None else self._make_parts()
        self.machine.begin(position, stop=stop, parts=parts, cursor_seq_no=cursor_seq_no)
        self._chain = None

    async def _pass_truncated(self, chain: StreamChain) -> None:
        """The stream begins behind this reader's position by now: tell the gap and go to the beginning."""
        missing = self.machine.missing_before(chain)
        if missing is None:
            missing = await self._locator.hidden_from(chain, self.machine.position)
        await self._leave_segment()
        self.machine.pass_truncated(chain, missing)

    async def _enter_segment(self, chain: StreamChain, until: float) -> bool:
        """Open the segment of the next record. False: there is none, and none came in time."""
        segment = self.machine.next_segment(chain)
        if isinstance(segment, NoSegment):
            return segment is NoSegment.GO_ON or await self._wait_for_chain(chain, until)
        handle = await self._source.open_segment(segment)
        if handle is None:
            await self._on_segment_gone(segment)
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
            self._source.chain.doubt()
        return True

    async def _read_segment(self, feed: SegmentFeed, until: float) -> bool:
        """Take what the segment has. False: it has nothing new, and nothing came in time."""
        try:
            run = await feed.run()
            if run is None:
                return await self._at_end_of_feed(feed, until)
        except SegmentGoneError:
            await self._on_segment_gone(feed.segment)
            return True
        if isinstance(run, BrokenEntry):
            self.machine.on_broken(run.entry, run.kind, run.why)
        else:
            earlier = self.machine.on_run(feed.segment.number, run.first, run.payloads, feed.next_entry)
            if earlier is not None:
                feed.restart(earlier)
        return True

    async def _at_end_of_feed(self, feed: SegmentFeed, until: float) -> bool:
        """Everything that is confirmed was taken: go on behind the segment, wait, or end."""
        segment = feed.segment
        if feed.has_ended:
            return await self._leave_ended(segment, until)
        loop, options = asyncio.get_running_loop(), self._options
        if not options.follow:
            before = feed.confirmed
            await feed.ask()
            if feed.confirmed == before and not feed.has_ended:
                self.machine.tell_broken()
                self.machine.on_confirmed_end(follows=False)
            return True
        self.machine.on_confirmed_end(follows=True)
        if self.machine.tell_broken():
            return True
        if loop.time() >= until:
            return False
        assert self._last_news is not None
        crowded = self._source.is_crowded and feed.next_entry > 0
        rest_at = self._last_news + (min(CROWDED_REST_S, options.rest_after_s) if crowded else options.rest_after_s)
        if loop.time() >= rest_at:
            self._resting = IdleLedger(self._source, feed, options.look_s)
            await self._close_feed()
        elif not await feed.wait(self._deadline(min(until, rest_at))):
            self._check_idle()
        return True

    async def _rest_on(self, rest: IdleLedger, until: float) -> bool:
        """Wait for a hint that the ledger is worth opening again. False: none came in time."""
        if rest.is_over:
            self._end_rest()
            return True
        if asyncio.get_running_loop().time() >= until:
            return False
        await rest.wait(self._deadline(until))
        if not rest.is_over:
            self._check_idle()
        return True

    def _end_rest(self) -> None:
        rest, self._resting = self._resting, None
        if rest is not None:
            rest.close()

    async def _leave_ended(self, segment: StreamSegment, until: float) -> bool:
        """The segment's ledger is closed and read. Once the record says so too, the segment is finished."""
        chain = await self._source.chain.current()
        now = chain.find(segment.number)
        if now is not None and now.is_open:
            chain = await self._source.chain.current(fresh=True)
            now = chain.find(segment.number)
        if now is not None and now.is_open:
            self.machine.tell_broken()
            return len(self.machine.ready) > 0 or await self._wait_for_chain(chain, until)
        self.machine.on_end(segment, now)
        await self._leave_segment()
        return True

    async def _on_segment_gone(self, segment: StreamSegment) -> None:
        """The ledger of a segment does not exist."""
        await self._leave_segment()
        chain = await self._source.chain.current(fresh=True)
        if self.machine.on_gone(segment, chain):
            await self._wait_for_chain(chain, asyncio.get_running_loop().time() + self._options.look_s)
        else:
            self._chain = None

    async def _leave_segment(self) -> None:
        self._end_rest()
        await self._close_feed()

    async def _close_feed(self) -> None:
        self.machine.leave()
        feed, self.feed = self.feed, None
        if feed is not None:
            await feed.close()

    def _deadline(self, until: float) -> float:
        return busy_until(until, self._last_news, self._options.idle_error_s)

    def _check_idle(self) -> None:
        now = asyncio.get_running_loop().time()
        error = idle_error(self._source.name, self.machine.position, now, self._last_news, self._options.idle_error_s)
        if error is not None:
            self._last_news = now
            raise error

    def _ensure_open(self) -> None:
        if self._closed:
            raise StreamClosedError(f"this reader of stream {self._source.name} is closed", stream=self._source.name)
