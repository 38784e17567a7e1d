"""The segment that an edit log appends to: begun with its first batch, ended when it is full or old enough.

A step that only needs the store again is repeated while the store does not answer (:func:`patiently`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from journal_manager.edits.ops import Batch
from journal_manager.edits.segment import SegmentInfo
from journal_manager.errors import JournalDiskError, JournalUnavailableError
from journal_manager.journals.backend import JournalWriter, SegmentWriter
from journal_manager.txid import TxId

_log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.05
LAST_PAUSE_S: Final = 1.0
"""Seconds between two attempts of a step whose store does not answer: they double from the first to the last."""

T = TypeVar("T")


async def patiently(step: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """Repeat a step that may be repeated, while the store does not answer, for at most ``patience_s`` seconds.

    A step that failed on a disk is not repeated. Raises what the last attempt raises.
    """
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + patience_s, FIRST_PAUSE_S
    while True:
        try:
            return await step()
        except JournalDiskError:
            raise
        except JournalUnavailableError as error:
            if loop.time() + pause > deadline:
                raise
            _log.warning("a step of the edit log is tried again in %g s: %s", pause, error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LAST_PAUSE_S)


class GrowingSegment:
    """At most one segment is open. Its methods do not overlap, but for :meth:`append`, :meth:`is_full`."""

    def __init__(
        self,
        writer: JournalWriter,
        *,
        layout_version: int,
        max_bytes: int,
        max_edits: int,
        max_s: float | None,
        patience_s: float,
        on_age: Callable[[], None],
    ) -> None:
        """``on_age`` is called once when the open segment is ``max_s`` seconds old."""
        self._writer = writer
        self._layout_version = layout_version
        self._max_bytes, self._max_edits, self._max_s = max_bytes, max_edits, max_s
        self._patience_s = patience_s
        self._on_age = on_age
        self._segment: SegmentWriter | None = None
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self._segment is not None

    def is_full(self, size: int, last: TxId) -> bool:
        """Whether the open segment takes no batch of ``size`` bytes that ends at ``last``."""
        assert self._segment is not None
        edits = last - self._segment.info.first + 1
        return self._bytes + size > self._max_bytes or edits > self._max_edits

    async def begin(self, first: TxId) -> None:
        """Open a segment whose first edit is ``first``. Raises as ``JournalWriter.start_segment``."""
        assert self._segment is None
        self._segment = await patiently(
            lambda: self._writer.start_segment(first, self._layout_version), self._patience_s
        )
        self._bytes = 0
        if self._max_s is not None:
            self._timer = asyncio.get_running_loop().call_later(self._max_s, self._aged)

    def append(self, batch: Batch) -> asyncio.Future[None]:
        """Send a batch. The future ends when it is durable; it raises as ``SegmentWriter.append``."""
        assert self._segment is not None
        sent = asyncio.ensure_future(self._segment.append(batch))
        self._bytes += len(batch.frames)
        return sent

    async def finalize(self, last: TxId) -> SegmentInfo | None:
        """End the open segment at ``last``, so that the next batch begins another. None if none is open."""
        if self._segment is None:
            return None
        segment = self._segment
        await patiently(segment.close, self._patience_s)
        final = await patiently(lambda: self._writer.finalize_segment(segment.info.first, last), self._patience_s)
        self._segment = None
        self.stop_timer()
        return final

    async def abort(self) -> None:
        """Let go of the open segment, as a crash would."""
        if self._segment is not None:
            await self._segment.abort()

    def stop_timer(self) -> None:
        """The open segment gets no older."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _aged(self) -> None:
        self._timer = None
        self._on_age()
