"""Sends the last add confirmed of one writer to bookies by itself, where no append is about to carry it.

:class:`~bookkeeper.client.write.lac_turns.LacTurns` decides when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.lac_turns import LAC_OTHERS_S, LacTurns, WaitAnotherTurn
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import DigestScheme
from bookkeeper.ledger.write import LedgerWriter, PublishLac
from bookkeeper.wire import WriteLac, encode_notice


def _never() -> bool:
    return False


class LacSender:
    """Sends what a writer's machine asks to publish: first to an ack quorum, a little later to the others."""

    def __init__(
        self,
        services: ClientServices,
        ledger_id: LedgerId,
        digest: DigestScheme,
        writer: LedgerWriter,
        tasks: Tasks,
        is_idle: Callable[[], bool],
    ) -> None:
        """``is_idle``: whether no append waits that would carry the news."""
        self._services = services
        self._ledger_id = ledger_id
        self._digest = digest
        self._writer = writer
        self._tasks = tasks
        self._is_idle = is_idle
        self._spec = writer.spec
        self._loop = asyncio.get_running_loop()
        self._turns = LacTurns()
        self._delay_s = services.config.explicit_lac_delay_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self._others_timer: asyncio.TimerHandle | None = None
        self._is_stopped = False

    def publish_soon(self, publish: PublishLac) -> None:
        """Send this soon, unless an append carries it."""
        if not self._turns.request(publish):
            return  # one is scheduled already
        if self._delay_s:
            self._timer = self._loop.call_later(self._delay_s, self._on_turn)
        else:
            self._loop.call_soon(self._on_turn)

    def stop(self) -> None:
        """Send nothing more. Idempotent."""
        self._is_stopped = True
        self._is_idle = _never
        for timer in (self._timer, self._others_timer):
            if timer is not None:
                timer.cancel()

    def _on_turn(self) -> None:
        """Send the last add confirmed, unless an append is about to carry it, or has carried it."""
        step = self._turns.on_turn(idle=self._is_idle() and self._writer.lac_to_publish() is not None)
        if step is WaitAnotherTurn.LATER:
            self._loop.call_soon(self._on_turn)
        elif step is not None and not self._is_stopped and (lac := self._writer.lac_to_publish()) is not None:
            now = self._spec.ack_quorum_of(step.bookies)
            self._publish(lac, now)
            self._writer.on_lac_published(lac)
            if self._others_timer is not None:
                self._others_timer.cancel()
                self._others_timer = None
            if rest := step.bookies[len(now) :]:
                self._others_timer = self._loop.call_later(LAC_OTHERS_S, self._publish_to_others, lac, rest)

    def _publish_to_others(self, lac: EntryId, bookies: Sequence[BookieId]) -> None:
        self._others_timer = None
        if self._writer.is_final_lac(lac):
            self._publish(lac, bookies)

    def _publish(self, lac: EntryId, bookies: Sequence[BookieId]) -> None:
        blob = self._digest.seal_lac(self._ledger_id, lac)
        request = WriteLac(self._ledger_id, lac, self._digest.master_key, blob)
        notice = encode_notice(request)
        for bookie in bookies:
            connection = self._services.pool.ready(bookie, ConnectionPurpose.LAC)
            if connection is not None:
                connection.write(notice)
            elif self._services.config.protocol == "v2":  # the first of these makes the v3 connection
                self._tasks.start(self._send(bookie, request), "explicit LAC")

    async def _send(self, bookie: BookieId, request: WriteLac) -> None:
        try:
            connection = await self._services.pool.get(bookie, ConnectionPurpose.LAC)
            await connection.request(request, self._services.config.request_timeout_ms / 1000)
        except BookKeeperError:
            pass  # the next explicit LAC or add carries it
