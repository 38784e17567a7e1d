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
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final, Protocol, TypeAlias

from bookkeeper import codec, wire
from bookkeeper.codec import FRAME_MAX, NO_LAC, STREAM_SHIFT, ReadReplies, ReplyRun
from bookkeeper.errors import BookieError, BookieUnavailableError, RequestTimedOutError, SecureConnectionError
from bookkeeper.ids import Address, EntryId, LedgerId
from bookkeeper.net.frame_protocol import FrameProtocol
from bookkeeper.seams import Buffer, Net
from bookkeeper.wire import Dialect, Operation, Status

TICK_S: Final = 0.1
"""Seconds between two looks at time limits."""

AddRun: TypeAlias = tuple[int, int, Status]
"""(first entry id, how many consecutive ones, status of all of them)."""

OnReplies: TypeAlias = Callable[[list[AddRun]], None]
OnLost: TypeAlias = Callable[[BookieError], None]
_STATUS: Final[dict[int, Status]] = {int(status): status for status in Status}
"""Looked up for every run of replies: three times as fast as calling the enum."""

_ENTRY_MASK: Final = (1 << STREAM_SHIFT) - 1

_HOW: Final = "ClientConfig.tls and .auth, --tls-ca, --tls-cert, --tls-key"
"""Where a client is told how to secure its connections."""

_AT_ONCE: Final = f"right after the TLS handshake: it does not take the certificate we show, or wants one: {_HOW}"

Key: TypeAlias = tuple[Operation, int, int]
"""(operation, ledger or request id, entry id): what v2 replies are matched by."""
Callback: TypeAlias = Callable[["wire.Reply | BookieError"], None]
"""Gets the reply, whatever its status, or why there will be none. The body of a batch read's reply is a view of the
receive buffer, good during this call only."""


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
        return self.stream_id << STREAM_SHIFT

    @property
    def connection(self) -> BookieConnection:
        return self._connection

    def send(self, frames: Buffer, *, alone: bool = False) -> None:
        """Send whole frames; they leave at the end of this turn of the loop. They must not change any more (W8).

        ``alone``: nothing that could go with them is expected.
        """
        if not self.closed:
            (self._connection.write_alone if alone else self._connection.write)(frames)

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

    key: Key
    fence: bool
    frame: bytes
    deadline: float
    callback: Callback | None


class ReadSink(Protocol):
    """Who asked for entries in plain reads that were sent together. Every entry is answered once: it is ``found``,
    ``answered`` on its own, or still open when the others end with ``lost``."""

    def found(self, buffer: Buffer, replies: ReadReplies, picked: list[int], entry_ids: list[int]) -> None:
        """The replies ``picked`` hold ``entry_ids``, if one may believe them: nothing was verified. The buffer is good
        during this call only."""

    def answered(self, entry_id: int, reply: wire.Reply | BookieError) -> None:
        """What came for this entry, if it is something else."""

    def lost(self, error: BookieError) -> None:
        """Nothing more will come."""


@dataclass(slots=True, eq=False)
class _Reads:
    """Plain reads that were sent together. ``callback`` is None when they have ended."""

    ledger_id: LedgerId
    entry_ids: list[int]
    first_txn: int
    deadline: float
    left: int
    callback: ReadSink | None
    fence: ClassVar[bool] = False


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
        self._by_txn: dict[int, _Pending | _Reads] = {}
        self._by_key: dict[Key, deque[_Pending | _Reads]] = {}
        self._held: dict[Key, deque[_Pending]] = {}
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
            ValueError: this dialect has no such request.
        """
        if self.closed:
            self._soon(lambda: callback(self._unavailable()))
            return
        self._last_txn = txn = self._last_txn % ((1 << STREAM_SHIFT) - 1) + 1
        if isinstance(request, wire.BatchRead):
            request = replace(request, request_id=txn)
        pending = _Pending(
            key=_key_of_request(request),
            fence=bool(getattr(request, "fence", False)),
            frame=wire.encode_request(request, self.dialect, txn),
            deadline=asyncio.get_running_loop().time() + timeout_s,
            callback=callback,
        )
        self._count += 1
        self._arm(pending.deadline)
        if self.dialect is Dialect.V3 or isinstance(request, wire.StartTls):
            self._by_txn[txn] = pending
            self.write(pending.frame)
        else:
            self._send_by_key(pending)

    def reads_nowait(self, ledger_id: LedgerId, entry_ids: list[int], deadline: float, sink: ReadSink) -> None:
        """Plain reads of different entries, of ids from 0 on; ``deadline`` by the loop's clock. ``sink`` is not called
        inside this call."""
        if self.closed:
            self._soon(lambda: sink.lost(self._unavailable()))
            return
        count = len(entry_ids)
        if self._last_txn + count >= 1 << STREAM_SHIFT:
            self._last_txn = 0
        txn = self._last_txn + 1
        self._last_txn += count
        reads = _Reads(ledger_id, entry_ids, txn, deadline, count, sink)
        if self.dialect is Dialect.V3:
            self._by_txn.update(dict.fromkeys(range(txn, txn + count), reads))
        else:
            entry_ids = self._expect_by_key(reads)
        self._count += count
        if deadline < self._timer_at:
            self._arm(deadline)
        if entry_ids:
            self.write_alone(codec.encode_reads(self.dialect, ledger_id, entry_ids, txn))

    def _expect_by_key(self, reads: _Reads) -> list[int]:
        """Replies of v2 are expected for them; which may be sent now. Behind a fencing read of the same entry one waits
        (R3): it goes by itself."""
        sent = []
        for entry_id in reads.entry_ids:
            key = (Operation.READ, reads.ledger_id, entry_id)
            waiting = self._by_key.get(key)
            if key in self._held or (waiting and waiting[0].fence):
                frame = codec.encode_reads(self.dialect, reads.ledger_id, [entry_id], 0)
                alone = _Pending(key, False, frame, reads.deadline, partial(self._answered, reads, entry_id))
                self._count += 1
                self._send_by_key(alone)
                continue
            if waiting is None:
                waiting = self._by_key[key] = deque()
            waiting.append(reads)
            sent.append(entry_id)
        return sent

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
            elif isinstance(reply, wire.BatchReply):
                waiter.set_result(replace(reply, body=bytes(reply.body)))
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

    def _take(self, key: Key) -> _Pending | _Reads | None:
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
        at = self._on_read_replies(buffer, start, end) if self._count else start
        if at == end or self._is_closed():
            return at - start
        replies = codec.split_add_replies(buffer, at, end, self.frame_max)
        if replies.runs:
            self._on_add_replies(replies.runs)
        for frame_start, frame_end in replies.slow:
            if frame_start < at:
                continue  # among those that were taken together
            if frame_start - 4 != at:  # what begins there has been looked at
                at = self._on_read_replies(buffer, frame_start - 4, replies.used)
            if at < frame_start:
                self._on_frame(memoryview(buffer)[frame_start:frame_end])
            if self.closed:
                break
        if replies.error is not None:
            raise replies.error
        return replies.used - start

    def _on_add_replies(self, batch: list[ReplyRun]) -> None:
        """Runs of one stream that follow each other go to it in one call."""
        current: AddStream | None = None
        collected: list[AddRun] = []
        v2 = self.dialect is Dialect.V2
        for stream_id, ledger_id, first, count, status in batch:
            if v2 and self._by_key:
                first, count = self._match_single_adds(LedgerId(ledger_id), first, count, _STATUS[status])
                if not count:
                    continue
            stream = self._streams.get(ledger_id if v2 else stream_id)
            if stream is not current:
                if current is not None:
                    current._replies(collected)
                current, collected = stream, []
            collected.append((first, count, _STATUS[status]))
        if current is not None:
            current._replies(collected)

    def _match_single_adds(self, ledger_id: LedgerId, first: int, count: int, status: Status) -> tuple[int, int]:
        """Adds made as requests (recovery's) take their replies out of the run; what remains is a stream's."""
        while count and isinstance(pending := self._take((Operation.ADD, ledger_id, first)), _Pending):
            self._finish(pending, wire.AddReply(status, ledger_id, EntryId(first)))
            first, count = first + 1, count - 1
        return first, count

    def _on_read_replies(self, buffer: bytearray, start: int, end: int) -> int:
        """The replies that hold an entry with which the bytes begin; where those begin that are left."""
        v2 = self.dialect is Dialect.V2
        replies = codec.split_read_replies(buffer, start, end, self.frame_max, v2)
        current: _Reads | None = None
        picked: list[int] = []
        entries: list[int] = []
        for i, txn in enumerate(replies.txns):
            entry_id = replies.entry_ids[i]
            if v2:
                pending = self._take((Operation.READ, LedgerId(replies.ledger_ids[i]), entry_id))
            else:
                pending = self._by_txn.get(txn)
            if not isinstance(pending, _Reads):
                self._on_single_read(pending, replies, i, buffer)
                continue
            if not v2:
                del self._by_txn[txn]
                entry_id = pending.entry_ids[txn - pending.first_txn]
            if pending is not current:
                if current is not None:
                    self._found(current, buffer, replies, picked, entries)
                current, picked, entries = pending, [], []
            picked.append(i)
            entries.append(entry_id)
        if current is not None:
            self._found(current, buffer, replies, picked, entries)
        return replies.used

    def _found(
        self, reads: _Reads, buffer: bytearray, replies: ReadReplies, picked: list[int], entry_ids: list[int]
    ) -> None:
        sink, count = reads.callback, len(picked)
        if sink is None:
            return
        reads.left -= count
        if not reads.left:
            reads.callback = None
        self._count -= count
        sink.found(buffer, replies, picked, entry_ids)

    def _on_single_read(
        self, pending: _Pending | _Reads | None, replies: ReadReplies, i: int, buffer: bytearray
    ) -> None:
        """Reply ``i`` to a read that is a request like others."""
        if not isinstance(pending, _Pending) or pending.key[0] is not Operation.READ:
            return
        if self.dialect is Dialect.V3:
            del self._by_txn[replies.txns[i]]
        self._finish(pending, read_reply(replies, i, buffer))

    def _on_frame(self, body: memoryview) -> None:
        header, reply = wire.decode_reply(body, self.dialect)
        if (
            isinstance(reply, wire.BareReply)
            and reply.status is Status.UNAUTHORIZED
            and header.op is not Operation.AUTH
        ):
            self.close(SecureConnectionError(f"{self.address} serves only who is encrypted, or authenticated: {_HOW}"))
            return
        if self.dialect is Dialect.V3:
            pending = self._by_txn.get(header.txn_id)
            if pending is not None and header.op is (Operation.READ if isinstance(pending, _Reads) else pending.key[0]):
                del self._by_txn[header.txn_id]  # replies are matched by transaction id and operation
            else:
                pending = None
        else:
            pending = self._take(_key_of_reply(header.op, reply))
        if isinstance(pending, _Pending):
            self._finish(pending, reply)
        elif pending is not None:
            self._answered(pending, _entry_of(pending, header.txn_id, reply, self.dialect), reply)
        elif header.op is Operation.ADD:
            self._on_single_add(header, reply)  # else nobody waits for it any more

    def _on_single_add(self, header: wire.RequestHeader, reply: wire.Reply) -> None:
        """A stream's reply in another shape than ``runs`` knows: fields in another order or more of them, or an error
        without ids. What says that an entry is stored names its ledger and itself."""
        v2 = self.dialect is Dialect.V2
        entry_id = header.txn_id & _ENTRY_MASK
        if isinstance(reply, wire.AddReply):
            stream = self._streams.get(reply.ledger_id if v2 else header.txn_id >> STREAM_SHIFT)
            entry_id = int(reply.entry_id) if v2 else entry_id
            named = stream is not None and (reply.ledger_id, reply.entry_id) == (stream.ledger_id, entry_id)
        else:
            stream = None if v2 else self._streams.get(header.txn_id >> STREAM_SHIFT)
            named = False
        if stream is not None and (named or reply.status is not Status.OK):
            stream._replies([(entry_id, 1, reply.status)])

    def _finish(self, pending: _Pending, reply: wire.Reply | BookieError) -> None:
        callback, pending.callback = pending.callback, None
        if callback is not None:
            self._count -= 1
            callback(reply)

    def _answered(self, reads: _Reads, entry_id: int, reply: wire.Reply | BookieError) -> None:
        """One of several reads: something else than its entry."""
        sink = reads.callback
        if sink is None:
            return
        reads.left -= 1
        if not reads.left:
            reads.callback = None
        self._count -= 1
        sink.answered(entry_id, reply)

    def _give_up(self, pending: _Pending | _Reads, error: BookieError) -> None:
        """No reply will be waited for any more."""
        if isinstance(pending, _Pending):
            self._finish(pending, error)
            return
        sink, pending.callback = pending.callback, None
        if sink is not None:
            self._count -= pending.left
            sink.lost(error)

    # -- time limits and the end --------------------------------------------------------------------------

    def _arm(self, deadline: float) -> None:
        if deadline < self._timer_at:
            loop = asyncio.get_running_loop()
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = max(deadline, loop.time() + TICK_S)
            self._timer = loop.call_at(self._timer_at, self._on_tick)

    def _everything(self) -> list[_Pending | _Reads]:
        waiting: list[_Pending | _Reads] = list(dict.fromkeys(self._by_txn.values()))
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
                self._give_up(pending, RequestTimedOutError(f"{self.address} did not answer in time"))
        self._by_txn = {txn: pending for txn, pending in self._by_txn.items() if pending.callback is not None}
        if left := [pending.deadline for pending in waiting if pending.callback is not None]:
            self._arm(min(left))

    def on_writable(self, writable: bool) -> None:
        for callback in list(self.writable_callbacks):
            callback(writable)

    @property
    def refusal(self) -> SecureConnectionError | None:
        """Why the bookie does not serve us as we are, if that is what ended the connection."""
        if isinstance(self._reason, SecureConnectionError):
            return self._reason
        if self._unheard():
            return SecureConnectionError(f"{self.address} ended the connection, {_AT_ONCE}")
        return None

    def _unheard(self) -> bool:
        """The bookie ended the connection and nothing had come encrypted: with TLS 1.3 a client learns that its
        certificate was refused only after its side of the handshake, perhaps before it has asked for anything."""
        return self.encrypted and not self.ended_here and self.received_bytes == self.in_clear[0]

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
            self._give_up(pending, lost)
        for callback in list(self.on_closing):
            callback(self)

    def _unavailable(self, error: BaseException | None = None) -> BookieUnavailableError:
        reason = f": {error}" if error is not None else ""
        if self._unheard():
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
    """A connection to the bookie at ``address``.

    Raises:
        BookieUnavailableError: nobody answers there (within ``timeout_s``), or there is no such place.
    """
    try:
        return await net.connect(
            address, lambda: BookieConnection(address, dialect, frame_max=frame_max), timeout_s=timeout_s
        )
    except (OSError, ValueError, OverflowError) as error:  # the latter two: a host or port as nobody can have it
        raise BookieUnavailableError(f"cannot connect to {address}: {error}") from error


def read_reply(replies: ReadReplies, i: int, buffer: Buffer) -> wire.ReadReply:
    """Reply ``i`` of a chunk, as it is when it comes by itself."""
    body = bytes(memoryview(buffer)[replies.begins[i] : replies.ends[i]])
    lac = replies.lacs[i] if replies.lacs[i] != NO_LAC else None
    return wire.ReadReply(Status.OK, LedgerId(replies.ledger_ids[i]), EntryId(replies.entry_ids[i]), body, lac)


# -- what a reply is matched by ------------------------------------------------------------------------------

_OPS: Final[dict[type, Operation]] = {
    wire.AddEntry: Operation.ADD,
    wire.ReadEntry: Operation.READ,
    wire.BatchRead: Operation.BATCH_READ,
    wire.ReadLac: Operation.READ_LAC,
    wire.WriteLac: Operation.WRITE_LAC,
    wire.ForceLedger: Operation.FORCE_LEDGER,
    wire.GetBookieInfo: Operation.BOOKIE_INFO,
    wire.ListEntries: Operation.LIST_ENTRIES,
    wire.Auth: Operation.AUTH,
    wire.StartTls: Operation.START_TLS,
}


def _key_of_request(request: wire.Request) -> Key:
    op = _OPS[type(request)]
    match request:
        case wire.AddEntry() | wire.ReadEntry():
            return (op, request.ledger_id, request.entry_id)
        case wire.BatchRead():
            return (op, request.request_id, 0)
        case _:
            return (op, 0, 0)


def _key_of_reply(op: Operation, reply: wire.Reply) -> Key:
    match reply:
        case wire.AddReply() | wire.ReadReply():
            return (op, reply.ledger_id, reply.entry_id)
        case wire.BatchReply():
            return (op, reply.request_id, 0)
        case _:
            return (op, 0, 0)


def _entry_of(reads: _Reads, txn: int, reply: wire.Reply, dialect: Dialect) -> int:
    """The entry that a reply to one of several reads is about."""
    return reads.entry_ids[txn - reads.first_txn] if dialect is Dialect.V3 else _key_of_reply(Operation.READ, reply)[2]
