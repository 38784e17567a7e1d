"""Fetches a stream's records: from a place on, across segments, to the end or for ever.

A fetcher has at most one ledger open. It learns of new segments from the stream's record, which is watched, and looks
at it from time to time in any case. What it asks of bookies ahead of its caller is bounded in bytes.

    begin --> enter a segment --> read it --> at its confirmed end: wait for entries
                 ^                   |
                 |                   v
                 +--- go on behind it, once the ledger is closed and the record says completed

A fetch that is cancelled, or times out, loses nothing: the next one goes on at the same record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Final

from segments.chain import StreamChain, StreamSegment
from segments.errors import StreamClosedError
from segments.position import EARLIEST, LATEST, Position
from segments.read.entry_sequence import EntrySequence, Item, lost_before, lost_with, truncated
from segments.read.locator import Locator
from segments.read.options import Parts, ReadOptions
from segments.read.reader_state import busy_until, idle_error
from segments.read.ready_queue import ReadyQueue
from segments.read.segment_feed import BrokenEntry, SegmentFeed, SegmentGoneError
from segments.read.stream_source import StreamSource
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
        "_cursor_seq_no",
        "_expected",
        "_following",
        "_last_news",
        "_locator",
        "_make_parts",
        "_options",
        "_parts",
        "_position",
        "_resting",
        "_seek",
        "_sequence",
        "_source",
        "_stop",
        "caught_up",
        "ended",
        "feed",
        "ready",
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
        self._parts: Parts | None = None
        self._seek: Seek | None = start
        """Where to begin; None once that is found."""
        self._stop: Position | None = None
        self._position = EARLIEST
        """The next position to fetch."""
        self._expected: int | None = None
        """The number of the next record to fetch; None: unknown."""
        self._cursor_seq_no: int | None = None
        """The number of the record at the place where this began, if that is a cursor's."""
        self._chain: StreamChain | None = None
        """The record as this fetcher has last looked at it."""
        self._sequence: EntrySequence | None = None
        self._resting: IdleLedger | None = None
        self._closed = False
        self._following = False
        self._last_news: float | None = None
        self.feed: SegmentFeed | None = None
        """The segment that is read now."""
        self.ready = ReadyQueue()
        """What was fetched and not handed out."""
        self.ended = False
        """Nothing follows behind what is ready."""
        self.caught_up = False
        """Everything that was confirmed, as far as is known, was fetched."""

    @property
    def position(self) -> Position:
        """The next position to fetch."""
        return self._seek if isinstance(self._seek, Position) else self._position

    @property
    def place(self) -> Seek:
        """The same; before the first fetch the place where that begins."""
        return self._position if self._seek is None else self._seek

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
        while not self.ready:
            self._ensure_open()
            if self.ended:
                return False
            if self._seek is not None:
                await self._begin()
                continue
            if self._resting is not None:
                if not await self._rest_on(self._resting, until):
                    return False
                continue
            chain = await self._source.chain.current()
            if chain is not self._chain:
                self._chain = chain
                if await self._pass_truncated(chain):
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
        self.ready.clear()
        self._seek, self.ended, self.caught_up, self._expected = seek, False, False, None

    async def close(self) -> None:
        """Stop. A fetch that waits raises StreamClosedError. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self.ready.clear()
        await self._leave_segment()
        if self._following:
            self._following = False
            self._source.chain.wake()
            self._source.chain.let_go()

    # -- where ----------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Find where to begin and to stop."""
        options, seek = self._options, self._seek
        assert seek is not None
        self._cursor_seq_no = None
        if options.stop is not None and self._stop is None and options.stop != LATEST:
            self._stop = await self._locator.find(options.stop)
        if isinstance(seek, Position) and EARLIEST < seek < LATEST:
            self._position = seek
        elif isinstance(seek, AtCursor):
            self._cursor_seq_no, self._position = await self._locator.find_cursor(seek.name)
        else:
            self._position = await self._locator.find(seek)
        if self._make_parts is not None:
            self._parts = self._make_parts()
        self._seek, self._expected, self._chain = None, None, None

    async def _pass_truncated(self, chain: StreamChain) -> bool:
        """If the stream begins behind this reader's place by now, tell the gap and go to the beginning."""
        beginning = chain.first_position
        if self._position >= beginning:
            return False
        expected = self._cursor_seq_no if self._expected is None else self._expected
        begins = chain.begin_seq_no
        if begins is None or expected is None:
            missing = await self._locator.hidden_from(chain, self._position)
        else:
            missing = max(0, begins - expected)
        await self._leave_segment()
        first, self._position, self._expected = self._position, beginning, begins
        if missing == 0:
            return False
        self.ready.add([truncated(first, beginning, missing)])
        return True

    async def _enter_segment(self, chain: StreamChain, until: float) -> bool:
        """Open the segment of the next record. False: there is none, and none came in time."""
        here = self._position
        if self._stop is not None and here >= self._stop:
            self.ended = True
            return True
        segment = chain.from_number(here.segment)
        if segment is None:
            return await self._wait_for_chain(chain, until)
        if segment.number > here.segment:
            self._position = here = segment.first
        if not segment.is_open and (segment.last is None or here > segment.last):
            self._finish_segment(segment, self._expected if here > segment.first else segment.start_seq_no)
            return True
        if here == segment.first:
            if (gap := lost_before(segment, self._expected)) is not None:
                self._take([gap])
            self._expected = segment.start_seq_no
        handle = await self._source.open_segment(segment)
        if handle is None:
            await self._on_segment_gone(segment)
            return True
        self.feed = SegmentFeed(
            self._source,
            segment,
            handle,
            here.entry,
            ahead_bytes=self._options.read_ahead_bytes,
            patience_s=self._options.patience_s,
        )
        self._sequence = EntrySequence(segment.number, here.entry, None if here.slot else self._expected)
        return True

    async def _wait_for_chain(self, chain: StreamChain, until: float) -> bool:
        """There is no segment to read now. Wait for one, or end."""
        if chain.sealed or not self._options.follow:
            self.ended, self.caught_up = True, True
            return True
        self.caught_up = True
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
        sequence = self._sequence
        assert sequence is not None
        if isinstance(run, BrokenEntry):
            sequence.on_broken(run.entry, run.kind, run.why)
            return True
        items = sequence.on_run(run.first, run.payloads)
        if sequence.earlier_entry is not None:
            self._sequence = EntrySequence(feed.segment.number, sequence.earlier_entry, None)
            feed.restart(sequence.earlier_entry)
            return True
        self._take(items)
        self._expected = sequence.expected
        self._position = max(self._position, Position(feed.segment.number, feed.next_entry, 0))
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
                self._tell_broken()
                self.ended = self.caught_up = True
            return True
        self.caught_up = True
        if self._tell_broken():
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
            self._tell_broken()
            return len(self.ready) > 0 or await self._wait_for_chain(chain, until)
        sequence = self._sequence
        assert sequence is not None
        if now is not None and (gap := sequence.on_end(now.end_seq_no)) is not None:
            self._take([gap])
        await self._leave_segment()
        self._finish_segment(now or segment, sequence.expected)
        return True

    def _finish_segment(self, segment: StreamSegment, expected: int | None) -> None:
        """Go on behind a segment."""
        self._expected = segment.end_seq_no if segment.end_seq_no is not None else expected
        self._position = Position(segment.number + 1, 0, 0)

    async def _on_segment_gone(self, segment: StreamSegment) -> None:
        """The ledger of a segment does not exist. If the record still names it, its records are lost."""
        await self._leave_segment()
        chain = await self._source.chain.current(fresh=True)
        now = chain.find(segment.number)
        if chain.first_position > self._position:  # it was truncated, and a gap of that kind is told
            self._chain = None
            return
        if now is None:  # it was dropped: it had no record
            self._chain = None
            self._position = max(self._position, Position(segment.number + 1, 0, 0))
            if chain.first_position < self._position:
                self._expected = None
            return
        self._take([lost_with(now, self._position, self._expected)])
        if now.is_open:
            self._position = Position(now.number, self._position.entry, self._position.slot)
            await self._wait_for_chain(chain, asyncio.get_running_loop().time() + self._options.look_s)
        else:
            self._finish_segment(now, None)

    def _tell_broken(self) -> bool:
        """Tell a broken entry at the end, whose records are not known yet. Returns whether there is one."""
        sequence = self._sequence
        assert sequence is not None
        gap = sequence.give_up()
        if gap is not None:
            self._take([gap])
            self._expected = None
        return gap is not None

    def _take(self, items: Sequence[Item]) -> None:
        """Make entries and gaps ready to be handed out: from the wanted position on, up to the stop."""
        if items:
            self.caught_up = False
        if self.ready.add_wanted(items, self._position, self._stop, self._parts):
            self.ended = True

    async def _leave_segment(self) -> None:
        self._end_rest()
        await self._close_feed()

    async def _close_feed(self) -> None:
        feed, self.feed, self._sequence = self.feed, None, None
        if feed is not None:
            await feed.close()

    def _deadline(self, until: float) -> float:
        return busy_until(until, self._last_news, self._options.idle_error_s)

    def _check_idle(self) -> None:
        now = asyncio.get_running_loop().time()
        error = idle_error(self._source.name, self._position, now, self._last_news, self._options.idle_error_s)
        if error is not None:
            self._last_news = now
            raise error

    def _ensure_open(self) -> None:
        if self._closed:
            raise StreamClosedError(f"this reader of stream {self._source.name} is closed", stream=self._source.name)
