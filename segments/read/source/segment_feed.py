"""Reads the entries of one segment's ledger, in runs, as they are confirmed.

    run()       the next confirmed entries; None if there are none now
    wait(t)     a long poll: until entries are confirmed, the ledger is closed, or the time is over
    has_ended   the ledger is closed, and everything in it was handed out

An entry that no bookie has, or has intact, is reported as broken, and the next run begins behind it. Reads that fail
for other reasons are repeated with growing pauses. No run is lost if a caller is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from bookkeeper.errors import BookKeeperError, CorruptionError, DataMissingError, NoSuchLedgerError
from bookkeeper.net.backoff import Backoff
from segments.error_translation import stream_error
from segments.record import GapKind

if TYPE_CHECKING:
    from bookkeeper import ReadHandle
    from segments.chain import StreamSegment
    from segments.read.source.stream_source import StreamSource

_log = logging.getLogger(__name__)

RETRIES: Final = Backoff(first_s=0.05, max_s=2.0)


class EntryRun(NamedTuple):
    """Payloads of consecutive entries."""

    first: int
    payloads: Sequence[bytes]


class BrokenEntry(NamedTuple):
    """An entry that must exist, and that no bookie has intact."""

    entry: int
    kind: GapKind
    why: str


class SegmentDeletedError(Exception):
    """The segment's ledger was deleted. Inside of this package only."""


class SegmentFeed:
    """The entries of one segment from ``next_entry`` on."""

    __slots__ = (
        "_ahead",
        "_failing_since",
        "_patience_s",
        "_polled",
        "_runs",
        "_singly",
        "_source",
        "handle",
        "next_entry",
        "segment",
    )

    def __init__(
        self,
        source: StreamSource,
        segment: StreamSegment,
        handle: ReadHandle,
        first: int,
        *,
        ahead_bytes: int,
        patience_s: float,
    ) -> None:
        self._source = source
        self._ahead = ahead_bytes
        self._patience_s = patience_s
        self._runs: AsyncGenerator[tuple[int, Sequence[bytes]], None] | None = None
        self._singly = False
        """Read the next entry by itself: the run that begins with it failed."""
        self._polled: tuple[int, bytes] | None = None
        """An entry that came with a long poll."""
        self._failing_since: float | None = None
        """Since when no read has succeeded."""
        self.segment = segment
        self.handle = handle
        self.next_entry = first

    @property
    def confirmed(self) -> int:
        """The last entry that may be read now, as far as is known."""
        return self.handle.last_add_confirmed

    @property
    def has_ended(self) -> bool:
        """Whether the ledger is closed and everything in it was handed out."""
        return self.handle.closed and self.next_entry > self.handle.last_add_confirmed

    @property
    def stuck_s(self) -> float:
        """For how many seconds reads have failed."""
        return 0.0 if self._failing_since is None else asyncio.get_running_loop().time() - self._failing_since

    def restart(self, entry: int) -> None:
        """Continue at another entry."""
        self._runs, self._polled, self.next_entry = None, None, entry

    async def run(self) -> EntryRun | BrokenEntry | None:
        """The next confirmed entries, or the next entry if it is broken; None if none is confirmed now.

        Raises:
            SegmentGoneError: the ledger was deleted. StreamUnavailableError: bookies have not answered for
            ``patience_s``; the next call asks them again.
        """
        delays = RETRIES.delays(self._source.client.services.seams.rng)
        while True:
            try:
                found = await self._run()
            except NoSuchLedgerError as error:
                raise SegmentDeletedError from error
            except (CorruptionError, DataMissingError) as error:
                if not self._singly:
                    self._singly = True
                    continue
                self._singly = False
                self.next_entry += 1
                kind = GapKind.CORRUPT if isinstance(error, CorruptionError) else GapKind.LOST
                return BrokenEntry(self.next_entry - 1, kind, str(error))
            except BookKeeperError as error:
                now = asyncio.get_running_loop().time()
                self._failing_since = self._failing_since or now
                if not error.retryable or now - self._failing_since >= self._patience_s:
                    name = self._source.name
                    raise stream_error(error, f"reading segment {self.segment} of stream {name}", name) from error
                _log.debug("reading segment %s of stream %s: %s", self.segment, self._source.name, error)
                await asyncio.sleep(next(delays))
            else:
                self._failing_since = None
                return found

    async def _run(self) -> EntryRun | None:
        first, last = self.next_entry, self.handle.last_add_confirmed
        if first > last:
            return None
        if self._polled is not None:
            entry, payload = self._polled
            self._polled = None
            if entry == first:
                return self._advance(first, [payload])
        if self._singly:
            run = self._advance(first, [await self.handle.read_entry(first)])
            self._singly = False
            return run
        if self._runs is None:
            if at_hand := self.handle.take_ready(first):
                return self._advance(first, at_hand)
            self._runs = self.handle.read_batches(first, last, ahead_bytes=self._ahead)
        runs, self._runs = self._runs, None  # a run that fails, or is cancelled, ends the generator
        found = await anext(runs, None)
        if found is not None:
            self._runs = runs
            return self._advance(*found)
        return None if self.next_entry > self.handle.last_add_confirmed else await self._run()

    def _advance(self, first: int, payloads: Sequence[bytes]) -> EntryRun:
        self.next_entry = first + len(payloads)
        return EntryRun(first, payloads)

    async def refresh_end(self) -> None:
        """Read the last add confirmed from the bookies, and from the store whether the ledger is closed.

        Raises:
            SegmentGoneError. StreamUnavailableError.
        """
        try:
            await self.handle.read_last_add_confirmed()
        except NoSuchLedgerError as error:
            raise SegmentDeletedError from error
        except BookKeeperError as error:
            name = self._source.name
            raise stream_error(error, f"asking how far segment {self.segment} of stream {name} goes", name) from error

    async def wait(self, until: float) -> bool:
        """Wait until there is a next entry, the ledger is closed, or the loop's time is ``until``. Returns whether
        there is news.

        Raises:
            SegmentGoneError. StreamError: the ledger cannot be followed any more.
        """
        left = until - asyncio.get_running_loop().time()
        try:
            if left > 0:
                confirmed, entry = await self.handle.read_last_add_confirmed_and_entry(
                    self.next_entry, timeout_ms=max(1, int(left * 1000)) if left < inf else 1 << 31
                )
                if entry is not None:
                    self._polled = (entry.entry_id, entry.payload)
                return confirmed >= self.next_entry or self.handle.closed
        except NoSuchLedgerError as error:
            raise SegmentDeletedError from error
        except (CorruptionError, DataMissingError):
            return True  # run() finds out which entry it is
        except BookKeeperError as error:
            if error.retryable:
                return self.handle.last_add_confirmed >= self.next_entry
            name = self._source.name
            raise stream_error(error, f"following segment {self.segment} of stream {name}", name) from error
        return False

    async def close(self) -> None:
        """Close the ledger's handle."""
        runs, self._runs = self._runs, None
        if runs is not None:
            await runs.aclose()
        await self.handle.close()
