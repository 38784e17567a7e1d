"""A writer's life that may be cut off anywhere, and what it was promised."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import pairwise

from journal_manager import JournalWriter, TxId
from tests.contracts.journal_backend import batch, txids


class Story:
    """Told again and again over one journal: each time from wherever the journal stands."""

    def __init__(self, open_writer: Callable[[], Awaitable[JournalWriter]]) -> None:
        self.open_writer = open_writer
        self.acknowledged = 0
        self.attempted = 0
        self.purged_below = 1

    async def live(self) -> None:
        """Two segments and a half, and a purge."""
        writer = await self.open_writer()
        self.check_last(writer.recovery.last_txid)
        first = writer.recovery.last_txid + 1
        for count in (5, 4):
            await self.segment(writer, first, count, finalize=True)
            first += count
        self.purged_below = max(self.purged_below, first - 4)
        await writer.purge(TxId(first - 4))
        await self.segment(writer, first, 3, finalize=False)

    async def segment(self, writer: JournalWriter, first: int, count: int, *, finalize: bool) -> None:
        """Batches of two edits, each awaited."""
        segment = await writer.start_segment(TxId(first), 1)
        at = first
        while at < first + count:
            size = min(2, first + count - at)
            self.attempted = at + size - 1
            await segment.append(batch(at, size))
            at += size
            self.acknowledged = self.attempted
        await segment.close()
        if finalize:
            await writer.finalize_segment(TxId(first), TxId(first + count - 1))

    def check_last(self, last: int) -> None:
        """What was acknowledged is there; of the batch in flight all or nothing. What is there now stays (J2, J5)."""
        assert last in (self.acknowledged, self.attempted)
        self.acknowledged = self.attempted = last

    async def check(self) -> None:
        """Open for write succeeds (J8), and everything promised is there, joined, once."""
        writer = await self.open_writer()
        last = writer.recovery.last_txid
        self.check_last(last)
        segments = await writer.segments()
        assert all(segment.last is not None for segment in segments)
        for one, two in pairwise(segments):
            assert one.last is not None and one.last + 1 == two.first
        assert bool(segments) == (last > 0)
        if segments:
            assert segments[0].first <= self.purged_below <= last + 1
            assert await txids(writer, segments[0].first) == list(range(segments[0].first, last + 1))
