"""A client's connection to one bookie: requests out, replies matched, losses reported.

Two ways to use it:

* **Streams** are for adds. A writer opens one per bookie of its ensemble and sends frames that it encoded once for
  all of them; replies come back as runs. Nothing is kept per entry here, and streams have no time limit of
  their own: a writer judges progress itself.
* **Requests** are for everything else: one reply or one error for each, never inside the call that made it.

Time limits: one coarse timer per connection, not one per request. A request may outlive its limit by up to
``TICK_S``; a reply that comes too late is dropped. When the connection is lost, everything still waiting ends with
BookieUnavailableError (outcome unknown).

Transaction ids of protocol v3: a streamed add has ``stream.txn_base + entry_id`` with txn_base = stream id << 40,
requests count up from 1 below 2**40. So one encoded frame serves all bookies of an ensemble: the *writer*
draws a stream id (:class:`StreamIds`, one per client) and opens its streams under it on every connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from bookkeeper import runs
from bookkeeper.errors import BookieError, BookieUnavailableError, MalformedFrameError, RequestTimedOutError
from bookkeeper.ids import Address, LedgerId
from bookkeeper.net.protocol import FRAME_MAX, FrameProtocol
from bookkeeper.seams import Buffer, Net
from bookkeeper.wire import requests as wire
from bookkeeper.wire.dialect import Dialect
from bookkeeper.wire.status import Status

TICK_S: Final = 0.1
"""Seconds between two looks at time limits."""

STREAM_BITS: Final = 40
"""A streamed add's transaction id: stream id above this bit, entry id below."""

AddRun: TypeAlias = tuple[int, int, Status]
"""(first entry id, how many consecutive ones, status of all of them)."""

OnReplies: TypeAlias = Callable[[list[AddRun]], None]
OnLost: TypeAlias = Callable[[BookieError], None]
Callback: TypeAlias = Callable[["wire.Reply | BookieError"], None]
"""Gets the reply, whatever its status, or why there will be none."""


class StreamIds:
    """Draws stream ids: one object per client, so that a stream has one id on all its connections."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """A stream id of 1 .. 2**23-1; after that many they start again."""
        self._last = self._last % ((1 << 23) - 1) + 1
        return self._last


class AddStream:
    """The adds of one writer on one connection. Made by :meth:`BookieConnection.open_stream`."""

    __slots__ = ("_connection", "_on_lost", "_on_replies", "closed", "key", "ledger_id", "stream_id")

    def __init__(
        self, connection: BookieConnection, stream_id: int, ledger_id: LedgerId, on_replies: OnReplies, on_lost: OnLost
    ) -> None:
        self._connection = connection
        self._on_replies = on_replies
        self._on_lost = on_lost
        self.stream_id = stream_id
        self.ledger_id = ledger_id
        self.key: int = ledger_id if connection.dialect is Dialect.V2 else stream_id
        self.closed = False

    @property
    def txn_base(self) -> int:
        """The transaction id of entry e is ``txn_base + e`` (v3)."""
        return self.stream_id << STREAM_BITS

    @property
    def connection(self) -> BookieConnection:
        return self._connection

    def send(self, frames: Buffer) -> None:
        """Send whole frames; they leave at the end of this turn of the loop. They must not change any more (W8)."""
        if not self.closed:
            self._connection.write(frames)

    def close(self) -> None:
        """No more replies are reported, and no loss. What was sent may still be stored. Idempotent."""
        if not self.closed:
            self.closed = True
            self._connection._forget(self)

    def _replies(self, batch: list[AddRun]) -> None:
        if not self.closed:
            self._on_replies(batch)

    def _lost(self, error: BookieError) -> None:
        if not self.closed:
            self.closed = True
            self._on_lost(error)


@dataclass(slots=True, eq=False)
class _Pending:
    """A request without its reply. ``callback`` is None after its time limit."""

    key: Hashable
    fence: bool
    frame: bytes
    deadline: float
    callback: Callback | None


class BookieConnection(FrameProtocol):
    """One connection to one bookie, in one dialect. Made by :func:`connect_bookie`."""

    def __init__(self, address: Address, dialect: Dialect, *, frame_max: int = FRAME_MAX) -> None:
        super().__init__(frame_max=frame_max)
        self.address = address
        self.dialect = dialect
        self.on_closing: list[Callable[[BookieConnection], None]] = []
        """Called once when the connection has ended, after everything that waited was told."""
        self.writable_callbacks: list[Callable[[bool], None]] = []
        """Called when the peer stops taking bytes (False) and when it takes them again (True)."""
        self._streams: dict[int, AddStream] = {}
        self._by_txn: dict[int, _Pending] = {}
        self._by_key: dict[Hashable, deque[_Pending]] = {}
        self._held: dict[Hashable, deque[_Pending]] = {}
        self._count = 0
        self._last_txn = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")

    # -- streams ------------------------------------------------------------------------------------------

    def open_stream(self, stream_id: int, ledger_id: LedgerId, on_replies: OnReplies, on_lost: OnLost) -> AddStream:
        """A way for one writer's adds.

        ``on_replies`` gets the replies of one chunk, in the order in which they came; ``on_lost`` at most once,
        when the connection ends, and then nothing more. Neither is called inside this call or inside ``send``.
        On a v2 connection replies carry no transaction id: there may be one stream per ledger.

        Raises:
            ValueError: the stream (v3) or the ledger (v2) has a stream here already.
        """
        stream = AddStream(self, stream_id, ledger_id, on_replies, on_lost)
        if stream.key in self._streams:
            raise ValueError(f"there is a stream {stream_id} for ledger {ledger_id} on this connection already")
        if self.closed:
            self._soon(lambda: stream._lost(self._unavailable()))
        else:
            self._streams[stream.key] = stream
        return stream

    def _forget(self, stream: AddStream) -> None:
        if self._streams.get(stream.key) is stream:
            del self._streams[stream.key]

    # -- requests -----------------------------------------------------------------------------------------

    @property
    def outstanding(self) -> int:
        """Requests without a reply, streams not counted."""
        return self._count

    def request_nowait(self, request: wire.Request, timeout_s: float, callback: Callback) -> None:
        """Send ``request``; ``callback`` gets its reply or a BookieError, exactly once, never inside this call.

        Raises:
            IllegalOperationError: this dialect has no such request.
        """
        if self.closed:
            self._soon(lambda: callback(self._unavailable()))
            return
        self._last_txn = txn = self._last_txn % ((1 << STREAM_BITS) - 1) + 1
        if isinstance(request, wire.BatchRead):
            request = replace(request, request_id=txn)
        pending = _Pending(
            key=_key_of_request(request),
            fence=bool(getattr(request, "fence", False)),
            frame=_encode(self.dialect, request, txn),
            deadline=asyncio.get_running_loop().time() + timeout_s,
            callback=callback,
        )
        self._count += 1
        self._arm(pending.deadline)
        if self.dialect is Dialect.V3 and not isinstance(request, wire.AddEntry):
            self._by_txn[txn] = pending
            self.write(pending.frame)
        else:
            self._send_by_key(pending)

    async def request(self, request: wire.Request, timeout_s: float) -> wire.Reply:
        """The reply to ``request``, whatever its status.

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
            else:
                waiter.set_result(reply)

        self.request_nowait(request, timeout_s, done)
        return await waiter

    def _send_by_key(self, pending: _Pending) -> None:
        """Replies without a transaction id are matched in order of sending, per key.

        A fencing read and a plain one of the same entry must not be in flight together: the plain one's reply
        could be taken for the promise that the ledger is fenced (R3). The later one waits.
        """
        held = self._held.get(pending.key)
        waiting = self._by_key.get(pending.key)
        if held or (waiting and waiting[0].fence != pending.fence):
            self._held.setdefault(pending.key, deque()).append(pending)
            return
        self._by_key.setdefault(pending.key, deque()).append(pending)
        self.write(pending.frame)

    def _take(self, key: Hashable) -> _Pending | None:
        waiting = self._by_key.get(key)
        if not waiting:
            return None
        pending = waiting.popleft()
        if not waiting:
            del self._by_key[key]
            held = self._held.pop(key, None)
            while held and held[0].callback is None:
                held.popleft()
            while held and (key not in self._by_key or held[0].fence == self._by_key[key][0].fence):
                later = held.popleft()
                self._by_key.setdefault(key, deque()).append(later)
                self.write(later.frame)
            if held:
                self._held[key] = held
        return pending

    # -- replies ------------------------------------------------------------------------------------------

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        replies = runs.split_add_replies(buffer, start, end, self.frame_max)
        if replies.runs:
            self._on_add_replies(replies.runs)
        for frame_start, frame_end in replies.slow:
            self._on_frame(memoryview(buffer)[frame_start:frame_end])
            if self.closed:
                break
        if replies.error is not None:
            raise replies.error
        return replies.used

    def _on_add_replies(self, batch: list[tuple[int, int, int, int, int]]) -> None:
        """Runs of one stream that follow each other go to it in one call."""
        current: AddStream | None = None
        collected: list[AddRun] = []
        v2 = self.dialect is Dialect.V2
        for stream_id, ledger_id, first, count, status in batch:
            if self._by_key and (v2 or stream_id == 0):
                first, count = self._match_single_adds(ledger_id, first, count, Status(status))
                if not count:
                    continue
            stream = self._streams.get(ledger_id if v2 else stream_id)
            if stream is not current:
                if current is not None and collected:
                    current._replies(collected)
                current, collected = stream, []
            if stream is not None:
                collected.append((first, count, Status(status)))
        if current is not None and collected:
            current._replies(collected)

    def _match_single_adds(self, ledger_id: int, first: int, count: int, status: Status) -> tuple[int, int]:
        """Adds made as requests (recovery's) take their replies out of the run; what remains is a stream's."""
        while count and (pending := self._take(("add", ledger_id, first))) is not None:
            self._finish(pending, wire.AddReply(status=status, ledger_id=ledger_id, entry_id=first))
            first, count = first + 1, count - 1
        return first, count

    def _on_frame(self, body: memoryview) -> None:
        txn, reply = _decode(self.dialect, body)
        pending = self._by_txn.pop(txn, None) if self.dialect is Dialect.V3 else None
        if pending is None:
            pending = self._take(_key_of_reply(reply))
        if pending is not None:  # else: nobody waits any more
            self._finish(pending, reply)

    def _finish(self, pending: _Pending, reply: wire.Reply | BookieError) -> None:
        callback, pending.callback = pending.callback, None
        if callback is not None:
            self._count -= 1
            callback(reply)

    # -- time limits and the end --------------------------------------------------------------------------

    def _arm(self, deadline: float) -> None:
        if deadline < self._timer_at:
            loop = asyncio.get_running_loop()
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = max(deadline, loop.time() + TICK_S)
            self._timer = loop.call_at(self._timer_at, self._on_tick)

    def _everything(self) -> list[_Pending]:
        waiting = list(self._by_txn.values())
        for queues in (self._by_key, self._held):
            for queue in queues.values():
                waiting.extend(queue)
        return [pending for pending in waiting if pending.callback is not None]

    def _on_tick(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        now = asyncio.get_running_loop().time()
        waiting = self._everything()
        for pending in waiting:
            if pending.deadline <= now:
                self._finish(pending, RequestTimedOutError(f"{self.address} did not answer in time"))
        self._by_txn = {txn: pending for txn, pending in self._by_txn.items() if pending.callback is not None}
        if left := [pending.deadline for pending in waiting if pending.callback is not None]:
            self._arm(min(left))

    def on_writable(self, writable: bool) -> None:
        for callback in list(self.writable_callbacks):
            callback(writable)

    def on_closed(self, error: BaseException | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        streams = list(self._streams.values())
        waiting = self._everything()
        self._streams, self._by_txn, self._by_key, self._held = {}, {}, {}, {}
        lost = self._unavailable(error)
        for stream in streams:
            stream._lost(lost)
        for pending in waiting:
            self._finish(pending, lost)
        for callback in list(self.on_closing):
            callback(self)

    def _unavailable(self, error: BaseException | None = None) -> BookieUnavailableError:
        reason = f": {error}" if error is not None else ""
        unavailable = BookieUnavailableError(f"the connection to {self.address} is lost{reason}")
        unavailable.__cause__ = error
        return unavailable

    @staticmethod
    def _soon(call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(call)


async def connect_bookie(
    net: Net, address: Address, dialect: Dialect = Dialect.V3, *, timeout_s: float = 10.0, frame_max: int = FRAME_MAX
) -> BookieConnection:
    """A connection to the bookie at ``address``.

    Raises:
        BookieUnavailableError: nobody answers there (within ``timeout_s``).
    """
    try:
        return await net.connect(
            address, lambda: BookieConnection(address, dialect, frame_max=frame_max), timeout_s=timeout_s
        )
    except OSError as error:
        raise BookieUnavailableError(f"cannot connect to {address}: {error}") from error


# -- requests and replies, as bytes and as keys --------------------------------------------------------------


def _encode(dialect: Dialect, request: wire.Request, txn: int) -> bytes:
    raise NotImplementedError


def _decode(dialect: Dialect, body: memoryview) -> tuple[int, wire.Reply]:
    raise MalformedFrameError


def _key_of_request(request: wire.Request) -> Hashable:
    match request:
        case wire.AddEntry():
            return ("add", request.ledger_id, request.entry_id)
        case wire.ReadEntry():
            return ("read", request.ledger_id, request.entry_id)
        case wire.BatchRead():
            return ("batch", request.request_id)
        case _:
            return type(request).__name__


def _key_of_reply(reply: wire.Reply) -> Hashable:
    match reply:
        case wire.AddReply():
            return ("add", reply.ledger_id, reply.entry_id)
        case wire.ReadReply():
            return ("read", reply.ledger_id, reply.entry_id)
        case wire.BatchReply():
            return ("batch", reply.request_id)
        case _:
            return type(reply).__name__.replace("Reply", "")
