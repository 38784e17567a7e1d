"""A client's connection to one bookie: it sends requests, hands out replies, and reports a loss.

There are two ways to use it:

* **Streams** are for adds. A writer opens one per bookie of its ensemble and sends frames that it encoded once for
  all of them; replies come back as runs. Nothing is kept per entry. A stream has no time limit of its own: the writer
  watches the progress of its bookies itself.
* **Requests** are for everything else: each gets one reply or one error, never inside the call that made it.

Which reply belongs to which request is decided by the machine of the dialect in :mod:`bookkeeper.net.replies`. This
module writes to the socket, cuts what arrives, runs the timer and performs the machine's deliveries.

Time limits: one coarse timer serves the whole connection. A request may outlive its limit by up to ``TICK_S``; a reply
that comes too late is dropped. When the connection is lost, everything that still waits ends with
BookieUnavailableError (outcome unknown).

A way that has died without a word is noticed while something is sent over it: where the bookie's system has
acknowledged nothing for ``SILENT_S``, the connection is ended, because a new one may have a way. A bookie that hangs,
or does not read, is no such case: its system acknowledges.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from bookkeeper import codec, wire
from bookkeeper.codec import FRAME_MAX, STREAM_SHIFT
from bookkeeper.errors import BookieError, BookieUnavailableError, RequestTimedOutError, SecureConnectionError, in_words
from bookkeeper.ids import Address, LedgerId
from bookkeeper.net.frame_protocol import FrameProtocol
from bookkeeper.net.replies.by_order import OrderMatcher
from bookkeeper.net.replies.by_transaction import TransactionMatcher
from bookkeeper.net.replies.deliveries import (
    AddRun,
    AnswerRead,
    AnswerRequest,
    AnswerStream,
    Callback,
    DeliverReads,
    Delivery,
    FailReads,
    FailRequest,
    ReadSink,
    SendFrame,
    StreamLost,
)
from bookkeeper.seams import Buffer, Net
from bookkeeper.wire import Dialect, Status

OnReplies: TypeAlias = Callable[[list[AddRun]], None]
OnLost: TypeAlias = Callable[[BookieError], None]


class StreamIds:
    """Draws stream ids. A client has one such object, so a stream has the same id on all its connections."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """Draw a stream id from 1 to 2**23-1. After the last one it begins again at 1."""
        self._last = self._last % ((1 << 23) - 1) + 1
        return self._last


class AddStream:
    """The adds of one writer on one connection. Made by :meth:`BookieConnection.open_stream`.

    In protocol v3 a streamed add has the transaction id ``stream.txn_base + entry_id``, where txn_base = stream id <<
    40. Other requests count up from 1 and stay below 2**40. The *writer* draws one stream id (:class:`StreamIds`, one
    per client) for its streams on all connections, so one encoded frame serves all bookies of an ensemble.
    """

    __slots__ = ("_on_lost", "_on_replies", "closed", "connection", "ledger_id", "stream_id")

    def __init__(
        self, connection: BookieConnection, stream_id: int, ledger_id: LedgerId, on_replies: OnReplies, on_lost: OnLost
    ) -> None:
        self._on_replies = on_replies
        self._on_lost = on_lost
        self.connection = connection
        self.stream_id = stream_id
        self.ledger_id = ledger_id
        self.closed = False

    @property
    def txn_base(self) -> int:
        """In v3 the transaction id of entry e is ``txn_base + e``."""
        return self.stream_id << STREAM_SHIFT

    def send(self, frames: Buffer, *, alone: bool = False) -> None:
        """Send whole frames at the end of this turn of the loop. The caller must not change them any more.

        ``alone`` says that no other frames are expected in this turn.
        """
        if not self.closed:
            connection = self.connection
            (connection.write_alone if alone else connection.write)(frames)
            if not connection.watched:
                connection.watch_way()

    def close(self) -> None:
        """Report no more replies, and no loss. What was sent may still be stored. Idempotent."""
        if not self.closed:
            self.closed = True
            self.connection.close_stream(self)

    def answered(self, runs: list[AddRun]) -> None:
        """Called by the connection when replies have come."""
        if not self.closed:
            self._on_replies(runs)

    def lost(self, error: BookieError) -> None:
        """Called by the connection when it has ended."""
        if not self.closed:
            self.closed = True
            self._on_lost(error)


__all__ = ["TICK_S", "AddRun", "AddStream", "BookieConnection", "Callback", "ReadSink", "StreamIds", "connect_bookie"]

TICK_S: Final = 0.1
"""Least seconds between two checks of time limits."""

SILENT_S: Final = 6.0
"""A bookie whose system has acknowledged nothing for so long cannot be reached over this connection. An append has time
left then for another one."""

LOOK_S: Final = 1.0
"""Seconds between two looks at whether it acknowledges, while something is sent."""

_HOW: Final = "ClientConfig.tls and .auth, --tls-ca, --tls-cert, --tls-key"
"""Where a client is told how to secure its connections."""

_AT_ONCE: Final = (
    f"right after the TLS handshake: it does not accept this client's certificate, or requires one: {_HOW}"
)


class BookieConnection(FrameProtocol):
    """One connection to one bookie, in one dialect. Made by :func:`connect_bookie`."""

    def __init__(self, address: Address, dialect: Dialect, *, frame_max: int = FRAME_MAX) -> None:
        super().__init__(frame_max=frame_max)
        self.address = address
        self.on_closing: list[Callable[[BookieConnection], None]] = []
        """Called once when the connection has ended, after everything that waited was told."""
        self.writable_callbacks: list[Callable[[bool], None]] = []
        """Called when the peer stops taking bytes (False) and when it takes them again (True)."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self.watched = True
        """Whether somebody looks at the way, or nobody can. False: :meth:`watch_way` is due when something is sent."""
        self._net: Net | None = None
        self._look: asyncio.TimerHandle | None = None
        self._sent_before = 0
        """Bytes that had been sent at the last look."""
        self.speak(dialect)

    def speak(self, dialect: Dialect) -> None:
        """Use ``dialect`` from now on. Nothing may be outstanding."""
        self.dialect = dialect
        self.matcher: TransactionMatcher | OrderMatcher
        self.matcher = TransactionMatcher() if dialect is Dialect.V3 else OrderMatcher()

    # -- streams ------------------------------------------------------------------------------------------

    def open_stream(self, stream_id: int, ledger_id: LedgerId, on_replies: OnReplies, on_lost: OnLost) -> AddStream:
        """Open a stream for one writer's adds.

        ``on_replies`` gets the replies of one chunk, in the order in which they came. ``on_lost`` is called at most
        once, when the connection ends, and is the last call. Neither is called inside this call or inside ``send``.
        In v2 replies carry no transaction id, so a connection has at most one stream per ledger.

        Raises:
            ValueError: the stream (v3) or the ledger (v2) has a stream here already.
        """
        stream = AddStream(self, stream_id, ledger_id, on_replies, on_lost)
        if self.closed:
            self._soon(lambda: stream.lost(self._unavailable()))
        else:
            self.matcher.streams.open(stream)
        return stream

    def close_stream(self, stream: AddStream) -> None:
        """Called by the stream: report nothing to it any more."""
        self.matcher.streams.close(stream)

    # -- requests -----------------------------------------------------------------------------------------

    @property
    def outstanding(self) -> int:
        """Requests and entries without a reply, not counting streams."""
        return self.matcher.outstanding

    def request_nowait(
        self, request: wire.Request, timeout_s: float, callback: Callback, context: wire.Context = ()
    ) -> None:
        """Send ``request``; ``callback`` gets its reply or a BookieError, exactly once, never inside this call.
        ``context``: pairs of text for the bookie's log.

        Raises:
            ValueError: this dialect has no such request.
        """
        if self.closed:
            self._soon(lambda: callback(self._unavailable()))
            return
        deadline = asyncio.get_running_loop().time() + timeout_s
        if frame := self.matcher.send(request, deadline, callback, context):
            self.write(frame)
        self._arm(deadline)
        if not self.watched:
            self.watch_way()

    def reads_nowait(self, ledger_id: LedgerId, entry_ids: list[int], deadline: float, sink: ReadSink) -> None:
        """Send plain reads of different entries, whose ids are not negative. ``deadline`` is by the loop's clock.

        ``sink`` is not called inside this call.
        """
        if self.closed:
            self._soon(lambda: sink.lost(self._unavailable()))
            return
        if frames := self.matcher.send_reads(ledger_id, entry_ids, deadline, sink):
            self.write_alone(frames)
        self._arm(deadline)
        if not self.watched:
            self.watch_way()

    async def request(self, request: wire.Request, timeout_s: float) -> wire.Reply:
        """Send ``request`` and return its reply, whatever its status.

        Cancelling the caller does not take the request back.

        Raises:
            BookieUnavailableError: the connection is or was lost; outcome unknown.
            RequestTimedOutError: no reply within ``timeout_s``; outcome unknown.
        """
        waiter: asyncio.Future[wire.Reply] = asyncio.get_running_loop().create_future()

        def done(reply: wire.Reply | BookieError) -> None:
            if waiter.done():
                return
            if isinstance(reply, BookieError):
                waiter.set_exception(reply)
            elif isinstance(reply, wire.BatchReply):
                waiter.set_result(replace(reply, body=bytes(reply.body)))
            else:
                waiter.set_result(reply)

        self.request_nowait(request, timeout_s, done)
        return await waiter

    # -- replies ------------------------------------------------------------------------------------------

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        at = self._on_read_replies(buffer, start, end) if self.matcher.outstanding else start
        if at == end or self._is_closed():
            return at - start
        replies = codec.split_add_replies(buffer, at, end, self.frame_max)
        if replies.runs:
            answered, others = self.matcher.on_add_replies(replies.runs)
            if others:
                self._deliver(others)
            for stream, runs in answered:
                stream.answered(runs)
        for frame_start, frame_end in replies.slow:
            if frame_start < at:
                continue  # a reply that was taken together with earlier ones
            if frame_start - 4 != at:  # it has already been looked at
                at = self._on_read_replies(buffer, frame_start - 4, replies.used)
            if at < frame_start:
                self._on_frame(memoryview(buffer)[frame_start:frame_end])
            if self.closed:
                break
        if replies.error is not None:
            raise replies.error
        return replies.used - start

    def _on_read_replies(self, buffer: bytearray, start: int, end: int) -> int:
        """Take the replies to plain reads at the beginning of the bytes. Returns where the rest begins."""
        replies = codec.split_read_replies(buffer, start, end, self.frame_max, self.dialect is Dialect.V2)
        if replies.txns:
            self._deliver(self.matcher.on_read_replies(replies, buffer))
        return replies.used

    def _on_frame(self, body: memoryview) -> None:
        if wire.is_taken_notice(body):
            return
        header, reply = wire.decode_reply(body, self.dialect)
        refused = isinstance(reply, wire.BareReply) and reply.status is Status.UNAUTHORIZED
        if refused and header.op is not wire.Operation.AUTH:
            self.close(SecureConnectionError(f"{self.address} requires TLS or authentication: {_HOW}"))
            return
        self._deliver(self.matcher.on_reply(header, reply))

    def _deliver(self, deliveries: list[Delivery], error: Callable[[], BookieError] | None = None) -> None:
        """Perform the machine's deliveries. ``error`` makes the error for requests that it gave up."""
        for delivery in deliveries:
            match delivery:
                case DeliverReads():
                    delivery.sink.found(*delivery[1:])
                case AnswerStream():
                    delivery.stream.answered(delivery.runs)
                case AnswerRequest():
                    delivery.waiter(delivery.reply)
                case AnswerRead():
                    delivery.sink.answered(delivery.entry_id, delivery.reply)
                case SendFrame():
                    self.write(delivery.frame)
                case FailRequest():
                    assert error is not None
                    delivery.waiter(error())
                case FailReads() | StreamLost():
                    assert error is not None
                    (delivery.sink if isinstance(delivery, FailReads) else delivery.stream).lost(error())

    # -- time limits and the end --------------------------------------------------------------------------

    def _arm(self, deadline: float) -> None:
        if deadline < self._timer_at:
            loop = asyncio.get_running_loop()
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = max(deadline, loop.time() + TICK_S)
            self._timer = loop.call_at(self._timer_at, self._on_tick)

    def _on_tick(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        late = self.matcher.on_time(asyncio.get_running_loop().time())
        self._deliver(late, lambda: RequestTimedOutError(f"{self.address} did not answer in time"))
        if (deadline := self.matcher.next_deadline()) is not None and not self.closed:
            self._arm(deadline)

    def tell_silence(self, net: Net) -> None:
        """Have ``net`` tell from now on whether the bookie's system acknowledges what is sent, if it can."""
        if net.tells_silence:
            self._net, self.watched = net, False

    def watch_way(self) -> None:
        """Look from time to time whether the bookie's system acknowledges, until nothing is on its way."""
        if self._net is not None and not self.closed:
            self.watched, self._sent_before = True, self.sent_bytes
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_at_way)

    def _look_at_way(self) -> None:
        self._look = None
        if self.closed or self._net is None or self._transport is None:
            return
        silence_s = self._net.silence_s(self._transport)
        if silence_s is not None and silence_s >= SILENT_S:
            self.abort(ConnectionAbortedError(f"its system has acknowledged nothing for {silence_s:.1f} s"))
        elif silence_s is None and self.sent_bytes == self._sent_before:
            self.watched = False
        else:
            self.watch_way()

    def on_writable(self, writable: bool) -> None:
        for callback in list(self.writable_callbacks):
            callback(writable)

    @property
    def refusal(self) -> SecureConnectionError | None:
        """Why the bookie does not serve this client, if that is what ended the connection."""
        if isinstance(self._reason, SecureConnectionError):
            return self._reason
        if self._ended_in_silence():
            return SecureConnectionError(f"{self.address} ended the connection {_AT_ONCE}")
        return None

    def _ended_in_silence(self) -> bool:
        """Whether the bookie ended the connection before it sent anything encrypted.

        With TLS 1.3 a client learns that its certificate was refused only after its side of the handshake, perhaps
        before its first request.
        """
        return self.encrypted and not self.ended_here and self.received_bytes == self.in_clear[0]

    def on_closed(self, error: BaseException | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._look is not None:
            self._look.cancel()
            self._look = None
        lost = self._unavailable(error)
        self._deliver(self.matcher.on_lost(), lambda: lost)
        for callback in list(self.on_closing):
            callback(self)

    def _unavailable(self, error: BaseException | None = None) -> BookieUnavailableError:
        reason = f": {error}" if error is not None else ""
        if self._ended_in_silence():
            reason += f", {_AT_ONCE}"
        unavailable = BookieUnavailableError(f"the connection to {self.address} is lost{reason}")
        unavailable.__cause__ = error
        return unavailable

    @staticmethod
    def _soon(call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(call)


async def connect_bookie(
    net: Net, address: Address, dialect: Dialect = Dialect.V3, *, timeout_s: float = 10.0, frame_max: int = FRAME_MAX
) -> BookieConnection:
    """Open a connection to the bookie at ``address``.

    Raises:
        BookieUnavailableError: nobody answers there within ``timeout_s``, or the address is impossible.
    """
    try:
        connection = await net.connect(
            address, lambda: BookieConnection(address, dialect, frame_max=frame_max), timeout_s=timeout_s
        )
    except (OSError, ValueError, OverflowError) as error:  # the latter two: an impossible host or port
        raise BookieUnavailableError(f"cannot connect to {address}: {in_words(error)}") from error
    connection.tell_silence(net)
    return connection
