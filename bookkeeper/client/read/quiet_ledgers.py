"""Waits for news of many ledgers in which little happens, with one long poll each.

A reader that follows a ledger has tasks and timers of its own, too much for ten thousand ledgers. A caller that has
read everything closes its reader and waits here. News are only a hint to open the ledger again: replies are not
verified.

The bookies of the last fragment are polled in turn, so a bookie that knows nothing new, because the writer has replaced
it, delays the news by one round. A change of the ledger's metadata is news, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from math import ceil, inf
from typing import Final

from bookkeeper.client.bookie_request import send_request
from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import NO_ENTRY, BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Watch
from bookkeeper.net.backoff import Backoff
from bookkeeper.wire import ReadEntry, ReadReply, Reply, Status

ROUND_S: Final = 60.0
"""How long a bookie is asked to hold a long poll; it may hold it for less."""

PAUSES: Final = Backoff(first_s=0.05, max_s=2.0)
"""After a poll that failed, or that a bookie has no room to hold."""


class QuietLedgers:
    """The quiet ledgers of one client."""

    def __init__(self, services: ClientServices) -> None:
        self._services = services
        self._tasks = Tasks("quiet ledgers")
        self._waits: dict[QuietLedger, None] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def watch(
        self,
        ledger_id: LedgerId,
        metadata: LedgerMetadata,
        last: int,
        on_news: Callable[[], None],
        look_at: float = inf,
    ) -> QuietLedger:
        """Call ``on_news`` once, when an entry above ``last`` may be confirmed, the ledger's metadata change, or soon
        after the loop's time is ``look_at``. Close what is returned."""
        wait = QuietLedger(self._services, self._tasks, ledger_id, metadata, last, on_news, look_at, self._forget)
        self._waits[wait] = None
        wait.start()
        return wait

    def _forget(self, wait: QuietLedger) -> None:
        self._waits.pop(wait, None)

    async def close(self) -> None:
        """End all waits by reporting news. Idempotent."""
        for wait in list(self._waits):
            wait.notify()
        await self._tasks.close()


class QuietLedger:
    """One ledger that is waited for."""

    __slots__ = (
        "_ensemble",
        "_forget",
        "_last",
        "_ledger_id",
        "_notify_at",
        "_on_news",
        "_pauses",
        "_polled_at",
        "_services",
        "_tasks",
        "_timer",
        "_turn",
        "_watch",
    )

    def __init__(
        self,
        services: ClientServices,
        tasks: Tasks,
        ledger_id: LedgerId,
        metadata: LedgerMetadata,
        last: int,
        on_news: Callable[[], None],
        look_at: float,
        forget: Callable[[QuietLedger], None],
    ) -> None:
        self._services = services
        self._tasks = tasks
        self._ledger_id = ledger_id
        self._ensemble: Sequence[BookieId] = metadata.last_fragment.ensemble
        self._last = last
        self._on_news: Callable[[], None] | None = on_news
        self._notify_at = look_at
        self._forget = forget
        self._turn = services.seams.rng.randrange(0, len(self._ensemble))
        self._pauses: Iterator[float] | None = None
        self._polled_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._watch: Watch | None = None

    def start(self) -> None:
        """Watch the metadata, and send the first poll."""
        self._watch = self._services.metadata.ledgers.watch(self._ledger_id, self.notify)
        self._poll()

    def notify(self) -> None:
        """Report news, once, and end."""
        on_news = self._on_news
        self.close()
        if on_news is not None:
            on_news()

    def close(self) -> None:
        """Stop waiting, without a report. A poll at a bookie ends by itself. Idempotent."""
        self._on_news = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._forget(self)

    def _poll(self) -> None:
        self._timer = None
        bookie = self._ensemble[self._turn % len(self._ensemble)]
        self._turn += 1
        self._polled_at = asyncio.get_running_loop().time()
        hold_s = max(0.001, min(ROUND_S, self._notify_at - self._polled_at))
        request = ReadEntry(
            self._ledger_id, NO_ENTRY, previous_lac=self._last, timeout_ms=ceil(hold_s * 1000), piggyback=True
        )
        limit_s = ROUND_S + self._services.config.request_timeout_ms / 1000
        send_request(
            self._services, self._tasks, bookie, request, self._answered, use=ConnectionPurpose.LAC, timeout_s=limit_s
        )

    def _answered(self, reply: Reply | BookKeeperError) -> None:
        if self._on_news is None or self._tasks.closed:
            return
        good = isinstance(reply, ReadReply) and reply.status is Status.OK
        if isinstance(reply, ReadReply) and good and self._is_news(reply):
            self.notify()
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._notify_at:
            self.notify()
            return
        if good and loop.time() - self._polled_at >= 1.0:
            self._pauses = None
            self._poll()
            return
        self._pauses = self._pauses or PAUSES.delays(self._services.seams.rng)
        self._timer = loop.call_later(next(self._pauses), self._poll)

    def _is_news(self, reply: ReadReply) -> bool:
        return reply.entry_id != NO_ENTRY or (reply.max_lac is not None and reply.max_lac > self._last)
