"""Connections to gateways: calls, redirects, and which gateway owns which stream. It knows gRPC.

A call that waits for a message is never cancelled for the sake of a timeout: gRPC would cancel the whole call.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import grpc
import grpc.aio

from bookkeeper.outcome import Outcome
from bookkeeper.rate_limited_log import RateLimitedLogger
from segments.errors import (
    GatewayRedirectError,
    StreamAccessError,
    StreamClosedError,
    StreamConfigError,
    StreamCorruptError,
    StreamError,
    StreamNotReadyError,
    StreamUnavailableError,
)
from segments.protocol.methods import METHODS
from segments.protocol.refusals import TRAILER, get_status
from segments.remote.gateway_address import GatewayCredentials

logger = logging.getLogger(__name__)

T = TypeVar("T")

PAUSE_S: Final = 0.1
"""The pause before a call is repeated, unless it was sent to another gateway."""

PATIENCE_S: Final = 30.0
"""How long calls are repeated while gateways do not answer, or are not ready."""

TELL_S: Final = 10.0
"""Least seconds between two lines about calls that are repeated."""

CONNECT_S: Final = 5.0
"""A connection may take so long until its handshakes are over: gRPC ends a slower attempt, and with it each call that
waits for it. The pause between two attempts is another one, and shorter."""
REPLY_BYTES_MAX: Final = 512 * 1024 * 1024
"""The largest message that is received: what a gateway has in progress of all its clients, unless it is set to more. A
gateway that announces more ends its call."""
ANSWER_S: Final = 20.0
"""How long one call may take; a gateway that is paused answers nothing."""


_used_in: set[int] = set()
"""The process that uses gRPC; a forked one finds its parent here."""


def _require_own_grpc(address: str) -> None:
    """Raises: StreamConfigError: this process was forked from one that has used gRPC, and every call would hang."""
    process = os.getpid()
    if _used_in and process not in _used_in:
        raise StreamConfigError(
            f"no connection to the gateway at {address}: this process was forked from one that has used gRPC, which "
            "works in none of its children. Connect in the children alone, or start them anew (with multiprocessing: "
            'the method "spawn")'
        )
    _used_in.add(process)


class GatewayCall:
    """One open call of several messages.

    A call that its gateway ends while a message is being sent has two ends in gRPC: what the gateway said, and an
    "internal error" of the message that could not be sent any more. gRPC's ``read()`` then drops the messages that are
    left, and its ``code()`` may tell the second end for the first. So messages are taken from gRPC's iterator, which
    gives all of them, and the first end that the call has is noted when it comes.
    """

    def __init__(self, call: Any, address: str, key: str = "") -> None:
        """``key`` is the call's name, for messages."""
        self._call = call
        self._messages = aiter(call)
        self._key = key
        self._ends: list[_CallEnd] = []
        self.address = address
        self.is_told = False
        """Whether the gateway itself said why the call failed; otherwise gRPC, or a proxy, did."""
        call.add_done_callback(partial(_note_end, self._ends))

    async def send(self, message: Any) -> None:
        """Send a message. Raises: as :meth:`receive`."""
        try:
            await self._call.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            raise (await self.failure()) or StreamUnavailableError("the call has ended") from None

    async def end(self) -> None:
        """Say that nothing more is sent."""
        try:
            await self._call.done_writing()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass  # receive() tells

    async def receive(self) -> Any:
        """The next message; None at the end. All that the gateway has sent comes before its failure does.

        Raises:
            StreamError: the call failed.
        """
        try:
            return await anext(self._messages)
        except (grpc.aio.AioRpcError, StopAsyncIteration):
            pass  # failure() knows which of the call's ends is the gateway's
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # the call was cancelled, and not who waits for it: its connection was closed
        failure = await self.failure()
        if failure is not None:
            raise failure
        return None

    async def failure(self) -> StreamError | None:
        """Why the call has ended; None if in good order."""
        await self._call.code()
        _note_end(self._ends, self._call)
        end = next((each for each in self._ends if each.is_final), self._ends[0])
        if end.code is grpc.StatusCode.OK:
            return None
        self.is_told = end.trailer is not None
        return get_status(end.code.name, end.details, end.trailer, call=self._key, address=self.address)

    def cancel(self) -> None:
        """End the call at once. Idempotent."""
        self._call.cancel()


class _CallEnd(NamedTuple):
    code: grpc.StatusCode
    details: str
    trailer: bytes | None

    @property
    def is_final(self) -> bool:
        """Whether it is certainly not that of a message that could not be sent."""
        return self.code is not grpc.StatusCode.INTERNAL or self.trailer is not None


def _note_end(ends: list[_CallEnd], call: Any) -> None:
    """Note the end that the call has now: gRPC may put another one in its place at once."""
    code, details, trailers = (_at_once(ask()) for ask in (call.code, call.details, call.trailing_metadata))
    ends.append(_CallEnd(code, details or "", _trailer(trailers)))


def _at_once(answer: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that has nothing to wait for: gRPC's, about a call that has ended."""
    try:
        answer.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("gRPC waits for the end of a call that has ended")


class GatewayChannels:
    """The connections of one client to all gateways that it has heard of."""

    def __init__(self, addresses: Sequence[str], access: GatewayCredentials) -> None:
        self._addresses = list(addresses)
        self._next = 0
        self._access = access
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._closed = False
        self._log = RateLimitedLogger(logger, lambda: asyncio.get_running_loop().time(), TELL_S)
        self._owners: dict[str, str] = {}
        """The gateway that owns a stream, as far as is known."""
        token = access.token
        self._metadata = () if token is None else (("authorization", f"Bearer {token.reveal()}"),)

    def address_for(self, stream: str) -> str:
        """Where to send a call that needs the owner of a stream."""
        return self._owners.get(stream) or self._addresses[self._next % len(self._addresses)]

    def note_failure(self, stream: str, address: str, error: StreamError) -> bool:
        """Learn from a failed call where to send the next one. Returns whether it should wait before that.

        Calls share what is learned. A failure says something of the gateway at ``address`` only: when several calls to
        one gateway fail, the first of them goes on to the next gateway, and the others follow.
        """
        if isinstance(error, GatewayRedirectError) and error.owner and error.owner != address:
            self._owners[stream] = error.owner
            return False
        unavailable = isinstance(error, StreamUnavailableError)
        if unavailable and self._owners.get(stream) == address:
            del self._owners[stream]
        elif unavailable or not isinstance(error, StreamNotReadyError):
            self._next += self._addresses[self._next % len(self._addresses)] == address
        return True

    def open(self, key: str, address: str, request: Any | None = None) -> GatewayCall:
        """Begin a call of several messages: ``Append.AppendStream``. Raises: StreamClosedError."""
        method = METHODS[key]
        channel = self._channel(address)
        make = channel.stream_stream if method.streams_requests else channel.unary_stream
        caller = make(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.reply.FromString,
        )
        call = caller(metadata=self._metadata) if request is None else caller(request, metadata=self._metadata)
        return GatewayCall(call, address, key)

    async def call(
        self, key: str, request: Any, *, stream: str = "", repeat: bool = True, patience_s: float = PATIENCE_S
    ) -> Any:
        """Make a call with one reply; follow redirects, and repeat it while gateways do not answer.

        ``repeat``: also if it may have been applied already. ``patience_s``: for how long.

        Raises:
            StreamError: as the gateway, or this library, has it.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + patience_s
        while True:
            address = self.address_for(stream)
            try:
                return await self._once(key, request, address)
            except StreamError as error:
                may = error.retryable and (repeat or error.outcome is Outcome.REJECTED)
                if not may or loop.time() >= until:
                    raise
                self._log_retry(error, until - loop.time())
                if self.note_failure(stream, address, error):
                    await asyncio.sleep(PAUSE_S)

    async def remove(
        self, key: str, request: Any, current: Callable[[], Awaitable[T | None]], same: Callable[[T, T], bool]
    ) -> bool:
        """Make a call that removes what has a name, and know whether it is gone. While that got no answer it is made
        again, but not over what has the name since. False: there was nothing.

        Args:
            current: what has the name; None: nothing. Where the caller may not know, or nobody can tell, the call is
                not made again.
            same: whether what was there before is what has the name now.

        Raises: as :meth:`call`.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        try:
            before = await current()
        except (StreamAccessError, StreamCorruptError):
            await self.call(key, request, repeat=False)
            return True
        if before is None:
            return False
        while True:
            try:
                await self.call(key, request, repeat=False, patience_s=until - loop.time())
            except StreamError as error:
                if not error.retryable or error.outcome is Outcome.REJECTED or loop.time() >= until:
                    raise
                self._log_retry(error, until - loop.time())
            else:
                return True
            await asyncio.sleep(PAUSE_S)
            now = await current()
            if now is None or not same(before, now):
                return True

    def _log_retry(self, error: StreamError, left_s: float) -> None:
        """Log that calls are repeated, and why: otherwise a program, or a command, is silent for all this time."""
        if isinstance(error, StreamUnavailableError):
            self._log.warning("%s; trying again for up to %.0f s", error, max(left_s, 0.0))

    async def _once(self, key: str, request: Any, address: str) -> Any:
        method = METHODS[key]
        caller = self._channel(address).unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.reply.FromString,
        )
        try:
            return await caller(request, metadata=self._metadata, timeout=ANSWER_S)
        except grpc.aio.AioRpcError as error:
            raise error_of(error, key, address) from None

    async def stream(self, key: str, request: Any, *, repeat: bool = True) -> AsyncIterator[Any]:
        """Make a call with many replies that any gateway answers. It is repeated until its first reply has come.

        ``repeat``: also if it may have been applied already.

        Raises: as :meth:`call`.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        came = False
        while True:
            call = self.open(key, self.address_for(""), request)
            try:
                while (reply := await call.receive()) is not None:
                    came = True
                    yield reply
                return
            except StreamError as error:
                may = error.retryable and (repeat or error.outcome is Outcome.REJECTED)
                if came or not may or loop.time() >= until:
                    raise
                self._log_retry(error, until - loop.time())
                self.note_failure("", call.address, error)
                await asyncio.sleep(PAUSE_S)
            finally:
                call.cancel()

    async def close(self) -> None:
        """Close all connections; calls raise StreamClosedError then. Idempotent."""
        self._closed = True
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()

    def _channel(self, address: str) -> grpc.aio.Channel:
        if self._closed:
            raise StreamClosedError("the connection to the gateways is closed")
        channel = self._channels.get(address)
        if channel is None:
            self._access.require_protected(address)  # also where a gateway sends us
            _require_own_grpc(address)
            options = (
                ("grpc.max_receive_message_length", REPLY_BYTES_MAX),
                ("grpc.max_send_message_length", -1),
                ("grpc.keepalive_time_ms", 10_000),  # a gateway that has vanished is noticed
                ("grpc.keepalive_timeout_ms", 5_000),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.min_reconnect_backoff_ms", round(CONNECT_S * 1000)),
                ("grpc.max_reconnect_backoff_ms", 1_000),
            )
            if self._access.is_encrypted:
                access = self._access
                credentials = grpc.ssl_channel_credentials(access.ca, access.key, access.certificate)
                channel = grpc.aio.secure_channel(address, credentials, options)
            else:
                channel = grpc.aio.insecure_channel(address, options)
            self._channels[address] = channel
        return channel


def error_of(error: grpc.aio.AioRpcError, key: str, address: str) -> StreamError:
    """The library's error for gRPC's. ``key`` is the call's name."""
    trailer = _trailer(error.trailing_metadata())
    return get_status(error.code().name, error.details() or "", trailer, call=key, address=address)


def _trailer(metadata: Any) -> bytes | None:
    for name, value in metadata or ():
        if name == TRAILER and isinstance(value, bytes):
            return value
    return None
