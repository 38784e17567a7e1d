"""The steps between two segments: find the end of the old one, then change the node, which ends it and begins the
next."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from bookkeeper.errors import BookKeeperError, MetadataUnavailableError, NoSuchLedgerError
from segments.chain import SegmentContents, StreamChain
from segments.error_translation import stream_error
from segments.errors import StreamCorruptError, StreamInvariantError, StreamUnavailableError
from segments.position import FIRST_SEGMENT

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle

_log = logging.getLogger(__name__)

T = TypeVar("T")

PAUSE_MIN_S: Final = 0.05
"""The pause after a first attempt that failed because bookies or metadata are away; it doubles."""

PAUSE_MAX_S: Final = 2.0
"""The longest pause between two attempts."""


@dataclass(frozen=True, slots=True)
class EndedSegment:
    """A segment whose ledger is closed, and what it holds."""

    number: int
    contents: SegmentContents
    announces: bool = False
    """Whether it says epochs of producers, and is needed for them although it holds no record."""


def end_segment(chain: StreamChain, segment: EndedSegment | None, now_ms: int) -> StreamChain:
    """The node with this segment completed, or dropped if it holds nothing that is needed. Idempotent.

    A segment without records that is the only one left holds all that is known of the producers of those before it.
    """
    if segment is None:
        return chain
    listed = chain.find(segment.number)
    if listed is None or not listed.is_open:
        return chain
    is_all = chain.count == 1 and segment.number > FIRST_SEGMENT and segment.contents.last_entry >= 0
    if segment.contents.records or segment.announces or is_all:
        return chain.complete(segment.number, segment.contents, now_ms)
    return chain.drop_empty(segment.number)


def begin_segment(
    chain: StreamChain, segment: EndedSegment | None, ledger_id: int, now_ms: int, location: str = ""
) -> StreamChain:
    """The node with this segment ended and the next one open, on ``ledger_id``. Idempotent."""
    if chain.recent and chain.recent[-1].ledger_id == ledger_id:
        return chain
    chain = end_segment(chain, segment, now_ms)
    if chain.next_ledger is not None and chain.next_ledger != ledger_id:
        chain = chain.discard_next()
    return replace(chain.start_segment(ledger_id, now_ms), location=location)


def release_stream(chain: StreamChain, segment: EndedSegment | None, now_ms: int, *, seal: bool = False) -> StreamChain:
    """The node after its owner has left: the segment ended, no ledger made in advance, no owner."""
    chain = end_segment(chain, segment, now_ms).discard_next().release()
    return chain.seal() if seal else chain


async def recovered_end(client: BookKeeper, stream: str, number: int, ledger_id: int) -> int:
    """Close a segment's ledger by recovery, which fences its writer; return its last entry, -1 if it has none.

    Raises:
        StreamUnavailableError: too few bookies answer, or the metadata store does not.
        StreamCorruptError: the ledger does not exist.
    """
    try:
        async with await client.open_ledger(ledger_id, None) as reader:
            return reader.last_add_confirmed
    except NoSuchLedgerError as error:
        raise StreamCorruptError(
            f"ledger {ledger_id} of segment {number} of stream {stream} does not exist any more", stream=stream
        ) from error
    except BookKeeperError as error:
        raise stream_error(error, f"recovering ledger {ledger_id} of segment {number} of stream {stream}") from error


async def close_ledger(handle: WriteHandle, *, patient: bool = True) -> None:
    """Close the ledger of a writer to which everything is confirmed. If ``patient`` this waits as long as the metadata
    store is away.

    Raises:
        BookKeeperError: it was fenced, closed or deleted by someone else; or, if not patient, the store is away.
    """
    pause = PAUSE_MIN_S
    while True:
        try:
            await handle.close()
            return
        except MetadataUnavailableError as error:
            if not patient:
                raise
            _log.warning("ledger %d is closed later: %s", handle.id, error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, PAUSE_MAX_S)


async def retry_until_reached(attempt: Callable[[], Awaitable[T]], what: str) -> T:
    """Repeat ``attempt`` as long as bookies or metadata cannot be reached. Raises what else it raises."""
    pause = PAUSE_MIN_S
    while True:
        try:
            return await attempt()
        except StreamUnavailableError as error:
            _log.warning("%s is tried again in %.2f s: %s", what, pause, error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, PAUSE_MAX_S)


def bug_error(stream: str, error: BaseException, what: str = "could not be made") -> StreamInvariantError:
    """Log an unexpected error that ends a writer. Returns the error for its callers."""
    _log.error("the writer of stream %s ends, because of a bug: %r", stream, error, exc_info=error)
    return StreamInvariantError(
        f"an entry of stream {stream} {what}, so its writer has ended ({type(error).__name__}: "
        f"{error}); this is a bug, and another writer can go on",
        stream=stream,
    )
