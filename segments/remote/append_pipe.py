"""A streaming append that goes on: after a redirect, at another gateway, after a gateway's death."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final

from bookkeeper.outcome import Outcome
from segments.errors import (
    GatewayRedirectError,
    StreamClosedError,
    StreamConfigError,
    StreamError,
    StreamInvariantError,
    StreamUnavailableError,
)
from segments.protocol.messages import get_result
from segments.protocol.refusals import get_error
from segments.record import AppendResult
from segments.remote.append_queue import QueuedBatch, RemoteAppendQueue, Settled
from segments.remote.gateway_channels import PATIENCE_S, PAUSE_S, GatewayCall, GatewayChannels

_log = logging.getLogger(__name__)

STALLED_S: Final = 5.0
"""After this time without an answer to what was sent, the call is given up: its gateway may be paused."""


class AppendPipe:
    """Sends batches of one writer or producer to a stream, in order, and resolves a future for each."""

    def __init__(
        self, channels: GatewayChannels, stream: str, *, idempotent: bool, patience_s: float = PATIENCE_S
    ) -> None:
        """``idempotent``: all batches carry a producer. ``patience_s``: how long it goes on without an answer."""
        self._channels = channels
        self._stream = stream
        self._patience_s = patience_s
        self._queue = RemoteAppendQueue(idempotent=idempotent)
        self._news = asyncio.Event()
        self._settled = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._answered_at = 0.0
        """When a caller was last told something, or the first batch came after a pause."""
        self._heard_at = 0.0
        self.failure: StreamError | None = None
        """What ended the pipe."""

    @property
    def pending_bytes(self) -> int:
        """Bytes that are not answered."""
        return self._queue.size

    @property
    def pending(self) -> int:
        """Batches that are not answered."""
        return len(self._queue)

    def submit(self, request: Any, records: int, size: int) -> asyncio.Future[AppendResult]:
        """Send a batch. Raises StreamError: the pipe has ended."""
        if self.failure is not None:
            raise self.failure
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[AppendResult] = loop.create_future()
        if not self._queue:
            self._answered_at = loop.time()
        self._queue.add(QueuedBatch(request, records, size, answer))
        self._news.set()
        if self._running is None:
            self._running = loop.create_task(self._run(), name=f"appends to stream {self._stream}")
        return answer

    async def settled(self, below: int = 0) -> None:
        """Wait until at most ``below`` bytes are not answered."""
        while self._queue and self._queue.size > below:
            self._settled.clear()
            await self._settled.wait()

    async def close(self) -> None:
        """Wait until everything is answered, and end. Idempotent."""
        if self.failure is None:
            await self.settled()
        await self.abort(StreamClosedError(f"the writer of stream {self._stream} is closed", stream=self._stream))

    async def abort(self, error: StreamError) -> None:
        """End at once. Idempotent."""
        self.failure = self.failure or error
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        self._resolve(self._queue.give_up(error))

    # -- calls ---------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            await self._go_on()
        except Exception as error:  # a task's error is nobody's: the callers would wait for ever
            _log.error("the writer of stream %s ends, because of a bug: %r", self._stream, error, exc_info=error)
            broken = StreamInvariantError(
                f"the writer of stream {self._stream} has ended ({type(error).__name__}: {error}); this is a bug, and "
                "another writer can go on",
                stream=self._stream,
            )
            self._end(broken)

    async def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._queue:
                self._news.clear()
                await self._news.wait()
            try:
                call = self._channels.open("Append.AppendStream", self._channels.address_for(self._stream))
            except StreamClosedError as closed:
                self._end(closed)
                return
            self._queue.began()
            error, said = await self._use(call)
            refuses = self._is_about_a_message(error)
            told = self._queue.ended(error, rest_not_applied=said, refuses=refuses)
            self._resolve(told)
            if told and refuses:  # which says nothing of the others
                self._answered_at = loop.time()
                continue
            waits = self._channels.note_failure(self._stream, call.address, error)
            if self._queue and (loop.time() - self._answered_at > self._patience_s or not self._may_go_on(error)):
                self._end(error)
                return
            if waits:
                await asyncio.sleep(PAUSE_S)

    def _may_go_on(self, error: StreamError) -> bool:
        return error.retryable or error.outcome is Outcome.UNKNOWN

    def _is_about_a_message(self, error: StreamError) -> bool:
        """Whether a call ended because a message of it cannot be: the gateway, or gRPC, has not even parsed it."""
        return isinstance(error, StreamConfigError) or type(error) is StreamError

    def _end(self, error: StreamError) -> None:
        self.failure = error
        self._resolve(self._queue.give_up(error))

    async def _use(self, call: GatewayCall) -> tuple[StreamError, bool]:
        """Send and receive until the call ends. Returns why, and whether the rest was certainly not applied."""
        sending = asyncio.ensure_future(self._send(call))
        receiving = asyncio.ensure_future(self._receive(call))
        watching = asyncio.ensure_future(self._watch())
        tasks: list[asyncio.Future[Any]] = [receiving, watching]
        try:
            await asyncio.wait([*tasks, sending], return_when=asyncio.FIRST_COMPLETED)
            if sending.done() and not (receiving.done() or watching.done()):
                sending.result()
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not receiving.done():
                return StreamUnavailableError(
                    f"the gateway at {call.address} did not answer for {STALLED_S:g} s", stream=self._stream
                ), False
            return receiving.result()
        finally:
            call.cancel()
            for task in (sending, receiving, watching):
                task.cancel()
            await asyncio.wait([sending, receiving, watching])

    async def _send(self, call: GatewayCall) -> None:
        while True:
            self._news.clear()
            for batch in self._queue.sendable():
                try:
                    await call.send(batch.request)
                except StreamError:
                    return  # _receive tells why
            await self._news.wait()

    async def _receive(self, call: GatewayCall) -> tuple[StreamError, bool]:
        last: StreamError | None = None
        try:
            while (reply := await call.receive()) is not None:
                self._heard_at = asyncio.get_running_loop().time()
                if reply.HasField("window"):
                    self._queue.resize(reply.window.records, reply.window.bytes)
                elif reply.HasField("result"):
                    self._take(get_result(reply.result))
                else:
                    last = get_error(reply.error)
                    self._take(last)
                self._news.set()
        except StreamError as error:
            redirect = last if isinstance(last, GatewayRedirectError) else None
            # An error that the gateway itself gave says that nothing else was applied; a broken call says nothing.
            return redirect or error, call.is_told and error.outcome is Outcome.REJECTED
        return StreamUnavailableError("the gateway ended the call", stream=self._stream), False

    async def _watch(self) -> None:
        """Return when nothing was answered for long, though something was sent."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            await asyncio.sleep(STALLED_S / 5)
            if self._queue and loop.time() - max(self._heard_at, self._answered_at, began) > STALLED_S:
                return

    def _take(self, answer: AppendResult | StreamError) -> None:
        try:
            told = self._queue.answered(answer)
        except LookupError:
            return
        if told is not None:
            self._answered_at = asyncio.get_running_loop().time()
            self._resolve([told])

    def _resolve(self, told: Iterable[Settled]) -> None:
        for batch, answer in told:
            future: asyncio.Future[AppendResult] = batch.answer
            if future.done():
                continue
            if isinstance(answer, StreamError):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        self._settled.set()
