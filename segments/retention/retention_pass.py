"""Looks at a stream, decides by its policy which segments go, and removes them.

    1  the node takes the segments out of the list and begins behind them: one compare-and-set, with the settings, the
       holds and the cursors' positions as they were
    2  their ledgers are deleted
    3  the node forgets them

A crash after any step is finished by the next pass. A pass need not own the stream.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from bookkeeper.meta.store import Check
from segments.chain import StreamChain, StreamHead, StreamSegment
from segments.cursors.cursor_node import cursors_as_positioned
from segments.directory.settings import StreamSettings
from segments.error_translation import worded
from segments.errors import StreamError, StreamNotFoundError
from segments.retention.agreed_time import AgreedTime
from segments.retention.chain_steps import change_chain_if
from segments.retention.hold_node import HoldNode
from segments.retention.removal import finish_removals
from segments.retention.retention import (
    CursorPosition,
    ReasonKind,
    RetentionReport,
    decide_retention,
    is_ahead,
    without,
)
from segments.retention.stagings import Stagings
from segments.retention.truncation import end_of_stream

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

_log = logging.getLogger(__name__)

EVERY_S: Final = 60.0
"""Seconds between two passes of a timer, on average."""

SEGMENTS_AT_ONCE: Final = 1000
"""Segments that one step takes out."""


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass decided and did."""

    report: RetentionReport
    deleted: tuple[int, ...]
    """Ledgers that are gone, also those that an earlier pass had left."""


async def _of_none(segment: StreamSegment) -> bool:
    return False


class RetentionPass:
    """Retention of one stream. ``cursors`` reads what holds now."""

    def __init__(
        self,
        client: BookKeeper,
        node: StreamHead,
        cursors: Callable[[], Awaitable[Sequence[CursorPosition]]],
        tells_of_producers: Callable[[StreamSegment], Awaitable[bool]] = _of_none,
    ) -> None:
        """``tells_of_producers``: whether the next writer may learn of them from this segment."""
        self._client, self._node = client, node
        self._cursors, self._tells_of_producers = cursors, tells_of_producers
        self._settings = StreamSettings(client.metadata_store, node.stream_id, node.name)
        self._holds = HoldNode(client.metadata_store, node)
        self._time = AgreedTime(client, node)
        self._told_ahead = 0
        """The segment of which the log says that its time is ahead."""

    async def explain(self) -> RetentionReport:
        """Why each segment stays or goes, as it is now. Changes nothing.

        Raises:
            StreamNotFoundError, StreamMetadataError, StreamCorruptError.
        """
        with worded(f"looking at stream {self._node.name}", self._node.name):
            return (await self._decide((await self._node.read())[0]))[0]

    async def run(self, *, all_reasons: bool = True) -> PassResult:
        """Remove what may go. Without ``all_reasons`` the report ends with the first segment that stays, which is
        faster where a stream has many.

        Raises: as ``explain``; a ledger that cannot be deleted now is left to the next pass.
        """
        report: RetentionReport | None = None

        async def decide(chain: StreamChain) -> tuple[StreamChain, list[Check]]:
            nonlocal report
            report, unchanged = await self._decide(chain, all_reasons=all_reasons)
            going = report.going[:SEGMENTS_AT_ONCE]
            if not going:
                return chain, unchanged
            return without(chain, going).remove(going[-1].number), unchanged

        name = self._node.name
        with worded(f"applying the retention of stream {name}", name):
            await change_chain_if(self._node, decide)
        assert report is not None
        self._warn_of_time_ahead(report)
        if report.going and report.expired_cursors:
            _log.warning(
                "stream %s: records that cursors needed are gone: %s",
                name,
                ", ".join(report.expired_cursors),
            )
        deleted = await finish_removals(self._client, self._node)
        with worded(f"deleting what batches have left in stream {name}", name):
            stagings = Stagings(self._client, self._node.stream_id, name)
            await stagings.clean(self._named, self._time.here_ms(), agreed_ms=self._time.now_ms)
        return PassResult(report, deleted)

    def _warn_of_time_ahead(self, report: RetentionReport) -> None:
        """Log it, once for each segment, when only the time of a wrong clock keeps what is older than the limit."""
        first, now_ms = report.first_kept, self._time.here_ms()
        if (
            first is None
            or first.segment.number == self._told_ahead
            or not is_ahead(first.segment.completed_ms, now_ms)
        ):
            return
        if all(reason.why is ReasonKind.AGE for reason in first.reasons):
            self._told_ahead = first.segment.number
            _log.warning(
                "stream %s, segment %d: %s. Truncate the stream behind it, or set a limit by bytes or records",
                self._node.name,
                first.segment.number,
                first.text,
            )

    async def _named(self) -> Collection[int]:
        return (await self._node.read())[0].ledgers

    async def keep_running(self, every_s: float = EVERY_S) -> None:
        """Run a pass now and then, until it is cancelled or the stream is deleted. A failure is logged and tried again.

        A timer, and not only the rolls of a writer: an idle stream's data expires, too. Many streams do not come at the
        same time.
        """
        while True:
            await asyncio.sleep(every_s * (0.75 + self._client.services.seams.rng.random() / 2))
            try:
                await self.run(all_reasons=False)
            except StreamNotFoundError:
                return
            except StreamError as error:
                _log.warning("the retention of stream %s is put off: %s", self._node.name, error)

    async def _decide(self, chain: StreamChain, *, all_reasons: bool = True) -> tuple[RetentionReport, list[Check]]:
        """What is decided is written only if the settings are still the same, and if no hold and no cursor comes after
        it was read, or is moved to another position. A cursor that moves on is no obstacle."""
        as_placed = await cursors_as_positioned(self._client.metadata_store, self._node.stream_id, self._node.name)
        settings, as_set = await self._settings.read_as_they_are()
        cursors = await self._cursors()
        holds, unchanged = await self._holds.read()
        decide = partial(decide_retention, settings.retention, chain, tuple(holds), cursors, all_reasons=all_reasons)
        now_ms = self._time.here_ms()
        report = decide(now_ms)
        if report.going:  # before something goes other clocks are asked, too
            now_ms = await self._time.now_ms()
            report = decide(now_ms)
        if chain.open_segment is not None and len(report.going) == chain.count - 1 > 0:
            is_empty = not (await end_of_stream(self._client, chain)).entry
            if is_empty and await self._tells_of_producers(report.going[-1]):
                report = decide(now_ms, open_is_empty=True)
        return report, [unchanged, as_placed, as_set]
