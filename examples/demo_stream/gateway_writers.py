"""Producers that append through two gateways, wherever the owner of the stream is."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from examples.demo_stream.flights import FlightFeed
from segments import AppendOutcomeUnknownError, AppendResult
from segments.remote import RemoteProducer, RemoteStream, RemoteWriter

BATCH: Final = 10
IN_FLIGHT: Final = 16


class GatewayWriter:
    """Appends the flights of one producer through gateways. With ``sabotage`` the batches have no ids."""

    def __init__(self, stream: RemoteStream, feed: FlightFeed, pause_s: float, *, sabotage: bool) -> None:
        self.feed = feed
        self.acknowledged = 0
        """All records below this number."""
        self.duplicates = 0
        self.sent_again = 0
        """Batches that were sent again without ids, because nobody could tell whether they are there."""
        self._stream = stream
        self._pause_s = pause_s
        self._sabotage = sabotage
        self._stopped = False

    def stop(self) -> None:
        """Send nothing more; what was sent is waited for."""
        self._stopped = True

    async def run(self) -> None:
        """Append until stopped. Raises StreamError."""
        opening = self._stream.writer() if self._sabotage else self._stream.producer(self.feed.producer)
        writer: RemoteWriter | RemoteProducer = await opening
        pending: deque[tuple[int, asyncio.Future[AppendResult]]] = deque()
        first = 0
        while not self._stopped or pending:
            if not self._stopped and len(pending) < IN_FLIGHT:
                pending.append((first, self._send(writer, first)))
                first += BATCH
                await asyncio.sleep(self._pause_s)
            while pending and (pending[0][1].done() or self._stopped or len(pending) >= IN_FLIGHT):
                await self._settle(writer, *pending.popleft())
        await writer.close()

    def _send(self, writer: RemoteWriter | RemoteProducer, first: int) -> asyncio.Future[AppendResult]:
        records = self.feed.records(first, BATCH)
        if isinstance(writer, RemoteProducer):
            return writer.append_batch_nowait(records, seq=first)
        return writer.append_batch_nowait(records)

    async def _settle(
        self, writer: RemoteWriter | RemoteProducer, first: int, sent: asyncio.Future[AppendResult]
    ) -> None:
        while True:
            try:
                result = await sent
                break
            except AppendOutcomeUnknownError:  # only without ids: it may be there already
                self.sent_again += 1
                sent = self._send(writer, first)
        self.acknowledged += BATCH
        self.duplicates += BATCH * result.duplicate
