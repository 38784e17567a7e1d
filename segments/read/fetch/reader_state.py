"""What a reader that hands nothing out is doing: idle, because nobody writes, or stuck, because something fails."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from bookkeeper.errors import BookKeeperError, NoSuchLedgerError, in_words
from segments.errors import PositionTruncatedError, ReaderIdleError, StreamNotFoundError, StreamUnavailableError
from segments.position import EARLIEST, Position

if TYPE_CHECKING:
    from segments.chain import StreamChain
    from segments.read.positions.locator import Locator
    from segments.read.source.segment_feed import SegmentFeed
    from segments.read.source.stream_source import StreamSource
    from segments.seek import Seek


class Lag(NamedTuple):
    """How far a reader or cursor is behind the stream's end."""

    records: int
    bytes: int
    """Estimated from the stream's completed segments."""
    seconds: float | None
    """The age of the last record read, if records wait; 0 if none does; None: unknown."""


class Activity(Enum):
    """What a reader is doing."""

    READING = "reading"
    """There are records that it has not handed out yet."""
    IDLE = "idle"
    """It has handed out everything, and nothing was written since."""
    STUCK = "stuck"
    """Something that it needs does not answer."""
    ENDED = "ended"
    """No record follows."""


@dataclass(frozen=True, slots=True)
class ReaderState:
    """What a reader is doing, and why."""

    activity: Activity
    position: Position
    quiet_s: float
    """Seconds since a record came."""
    reason: str
    """In a sentence."""


def idle_reason(chain: StreamChain) -> str:
    """Why a reader at the end gets nothing, in a sentence."""
    opened = chain.open_segment
    if opened is None:
        return "no segment is open: nobody writes to the stream"
    who = f"{chain.owner} writes" if chain.owner else "a writer may write"
    return f"{who} to segment {opened.number}, and has added nothing"


async def lag_at(source: StreamSource, locator: Locator, seek: Seek, last_append_ms: int | None) -> Lag:
    """How far a reader at ``seek`` is behind the stream's end. ``last_append_ms``: when the record before its seek
    was appended; None: unknown.

    Raises: StreamNotFoundError, StreamUnavailableError, CursorNotFoundError.
    """
    position = seek if isinstance(seek, Position) else await locator.find(seek)
    chain = await source.chain.current()
    end = await locator.end(chain)
    try:
        here = await locator.seq_no(max(position, chain.first_position))
    except PositionTruncatedError as error:  # meanwhile
        here = await locator.seq_no(error.position or EARLIEST)
    records = max(0, end.seq_no - here)
    density = chain.listed_bytes / chain.listed_records if chain.listed_records else 0.0
    seconds = None
    if not records:
        seconds = 0.0
    elif last_append_ms is not None:
        seconds = max(0, source.now_ms() - last_append_ms) / 1000
    return Lag(records, int(records * density), seconds)


@dataclass(frozen=True, slots=True)
class ReaderCondition:
    """A reader's own state, from which :meth:`query` finds out what the reader is doing."""

    source: StreamSource
    feed: SegmentFeed | None
    position: Position
    caught_up: bool
    ended: bool
    last_news: float | None

    async def query(self) -> ReaderState:
        """Find out what the reader is doing, by requests to the metadata store and bookies. Raises:
        StreamNotFoundError."""
        if self.ended:
            return self._state(Activity.ENDED, "no record follows")
        try:
            chain = await self.source.chain.current(fresh=True)
        except StreamNotFoundError:
            raise
        except StreamUnavailableError as error:
            return self._state(Activity.STUCK, f"the metadata store does not answer: {error}")
        if not self.caught_up:
            failing_s = self.feed.stuck_s if self.feed is not None else 0.0
            if failing_s:
                return self._state(Activity.STUCK, f"bookies have not given the next entry for {failing_s:.0f} s")
            return self._state(Activity.READING, "there are records to hand out")
        opened = chain.open_segment
        if self.feed is not None:
            before = self.feed.next_entry
            try:
                async with asyncio.timeout(self.source.client.services.config.request_timeout_ms / 1000):
                    confirmed = await self.feed.handle.read_last_add_confirmed()
            except NoSuchLedgerError:
                return self._state(
                    Activity.READING, f"segment {self.feed.segment} was removed, and the reader leaves it"
                )
            except (BookKeeperError, TimeoutError) as error:
                what = in_words(error) or "no answer in time"
                return self._state(Activity.STUCK, f"the bookies of segment {self.feed.segment} do not answer: {what}")
            if confirmed >= before:
                return self._state(Activity.READING, "a new entry was just confirmed")
        elif opened is not None:
            try:
                if (handle := await self.source.open_segment(opened)) is not None:
                    await handle.close()
            except StreamUnavailableError as error:
                return self._state(Activity.STUCK, f"the bookies of segment {opened} do not answer: {error}")
        return self._state(Activity.IDLE, idle_reason(chain))

    def _state(self, activity: Activity, reason: str) -> ReaderState:
        now = asyncio.get_running_loop().time()
        return ReaderState(activity, self.position, now - self.last_news if self.last_news is not None else 0.0, reason)


_ROUNDING_S = 1e-6


def wait_deadline(until: float, news: float | None, idle_s: float | None) -> float:
    """The end of a wait: ``until``, or the time at which the reader counts as idle, if that is earlier.

    ``news`` is when something came last; None: nothing was asked for yet. ``idle_s``: None, if it never counts as idle.
    """
    return until if idle_s is None or news is None else min(until, news + idle_s)


def idle_error(
    stream: str, position: Position, now: float, news: float | None, idle_s: float | None
) -> ReaderIdleError | None:
    """The error to raise if the reader counts as idle now; None if it does not."""
    if idle_s is None or news is None or now - news < idle_s - _ROUNDING_S:
        return None
    text = f"nothing came from stream {stream} for {idle_s:g} s; Reader.state() tells whether it is idle or stuck"
    return ReaderIdleError(text, stream=stream, position=position)
