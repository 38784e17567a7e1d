"""Sends stored entries to one bookie as recovery adds, a run at a time: what a repair copies.

    send(run) -- room in the window? --> a stream of its own --> frames --> replies in runs --> all acknowledged
                 no: wait, in the order of the calls

Nothing is kept or computed per entry. A slow bookie is not a failed one: the time limit begins anew with every reply,
and because the window bounds what one bookie has to answer, a run does not wait long behind others. In protocol v2
replies do not say to whom they belong, so there the entries go as single requests.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

from bookkeeper import codec
from bookkeeper.client.bookie_request import failure_of, request_reply
from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError, RequestTimedOutError
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.net.connection import AddRun, BookieConnection
from bookkeeper.wire import AddEntry, Dialect, Status, error_of

WINDOW_BYTES: Final = 4 * 1024 * 1024
"""Bytes that one bookie has to answer at a time; one larger run alone may exceed it."""


class RecoveryAdds:
    """The recovery adds of one caller to one bookie, of any ledgers."""

    def __init__(self, services: ClientServices, bookie: BookieId, *, window_bytes: int = WINDOW_BYTES) -> None:
        self._services = services
        self._bookie = bookie
        self._window_bytes = window_bytes
        self._in_flight = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        """The runs whose turn has not come, with their bytes: as many as copies have under way (``runs_max`` each)."""

    async def send(
        self, tasks: Tasks, ledger_id: LedgerId, entry_ids: Sequence[int], entries: Sequence[bytes], master_key: bytes
    ) -> None:
        """Send entries as they are stored. Returns when the bookie has acknowledged all of them, so they are durable.

        Raises:
            BookKeeperError: the bookie refused an entry, or went away, or did not answer for ``request_timeout_ms``.
                Some of the entries may be stored.
        """
        size = sum(map(len, entries))
        await self._take(size)
        try:
            connection = await self._services.pool.get(self._bookie, ConnectionPurpose.RECOVERY)
            if connection.dialect is Dialect.V3:
                await self._stream(connection, ledger_id, entry_ids, entries, master_key)
            else:
                await self._singly(tasks, ledger_id, entry_ids, entries, master_key)
        finally:
            self._give(size)

    # -- the window ---------------------------------------------------------------------------------------

    async def _take(self, size: int) -> None:
        if not self._waiting and self._fits(size):
            self._in_flight += size
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(size)
            else:
                self._waiting.remove((size, turn))
                self._admit()
            raise

    def _give(self, size: int) -> None:
        self._in_flight -= size
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.popleft()
            self._in_flight += size
            turn.set_result(None)

    def _fits(self, size: int) -> bool:
        return not self._in_flight or self._in_flight + size <= self._window_bytes

    # -- one run ------------------------------------------------------------------------------------------

    async def _stream(
        self,
        connection: BookieConnection,
        ledger_id: LedgerId,
        entry_ids: Sequence[int],
        entries: Sequence[bytes],
        master_key: bytes,
    ) -> None:
        loop = asyncio.get_running_loop()
        limit_s = self._services.config.request_timeout_ms / 1000
        done: asyncio.Future[BookKeeperError | None] = loop.create_future()
        left = len(entry_ids)

        def end(error: BookKeeperError | None) -> None:
            if not done.done():
                done.set_result(error)

        def on_replies(runs: list[AddRun]) -> None:
            nonlocal left
            if not limit.expired():
                limit.reschedule(loop.time() + limit_s)
            for first, count, status in runs:
                left -= count
                if status is not Status.OK:
                    end(error_of(status, f"entry {first} of ledger {ledger_id} to {self._bookie}"))
            if not left:
                end(None)

        stream = connection.open_stream(self._services.streams.next(), ledger_id, on_replies, end)
        self._services.pool.enlist(connection)
        try:
            frames = codec.encode_recovery_adds(
                connection.dialect, ledger_id, entry_ids, entries, master_key, stream.txn_base
            )
            async with asyncio.timeout(limit_s) as limit:
                stream.send(frames)
                error = await done
        except TimeoutError:
            error = RequestTimedOutError(f"{connection.address} did not answer in time")
        finally:
            stream.close()
            self._services.pool.dismiss(connection)
        if error is not None:
            raise error

    async def _singly(
        self, tasks: Tasks, ledger_id: LedgerId, entry_ids: Sequence[int], entries: Sequence[bytes], master_key: bytes
    ) -> None:
        adds = [
            AddEntry(ledger_id, EntryId(entry_id), master_key, entry, recovery=True)
            for entry_id, entry in zip(entry_ids, entries, strict=True)
        ]
        waiting = [
            request_reply(self._services, tasks, self._bookie, add, use=ConnectionPurpose.RECOVERY) for add in adds
        ]
        for add, reply in zip(adds, await asyncio.gather(*waiting), strict=True):
            what = f"entry {add.entry_id} of ledger {ledger_id} to {self._bookie}"
            if (error := failure_of(reply, what)) is not None:
                raise error
