"""Requests that wait for a reply on one connection, and what a reply matcher tells the connection to do.

``waiter``, ``sink`` and ``stream`` belong to the sender of the request. A matcher keeps them and names them in its
deliveries; it never calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from bookkeeper import wire
from bookkeeper.codec import NO_LAC, STREAM_SHIFT, ReadReplies
from bookkeeper.errors import BookieError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.wire import Operation, Status

AddRun: TypeAlias = tuple[int, int, Status]
"""(first entry id, number of consecutive entries, status of all of them)."""

Callback: TypeAlias = Callable[["wire.Reply | BookieError"], None]
"""Gets the reply, whatever its status, or the error if there is none. The body of a batch read's reply is a view of the
receive buffer, valid during this call only."""

StreamReplies: TypeAlias = tuple["StreamSink", list[AddRun]]
"""Call ``answered`` of the stream with the runs. A plain tuple: there is one for every chunk of replies to adds."""

Key: TypeAlias = tuple[Operation, int, int]
"""(operation, ledger or request id, entry id), by which v2 replies are matched."""


class StreamSink(Protocol):
    """The sender of one stream of adds."""

    stream_id: int
    ledger_id: LedgerId

    def answered(self, runs: list[AddRun]) -> None:
        """These replies came, in this order."""

    def lost(self, error: BookieError) -> None:
        """The connection has ended: no reply follows."""


class ReadSink(Protocol):
    """The sender of plain reads that were sent together.

    Every entry gets one answer: it is ``found``, or ``answered`` on its own, or ``lost`` ends it with all others.
    """

    def found(self, buffer: Buffer, replies: ReadReplies, picked: list[int], entry_ids: list[int]) -> None:
        """The replies ``picked`` claim to hold ``entry_ids``; they are not verified yet. The buffer is valid during
        this call only."""

    def answered(self, entry_id: int, reply: wire.Reply | BookieError) -> None:
        """This entry got another reply, or an error."""

    def lost(self, error: BookieError) -> None:
        """No further reply follows."""


# -- what waits ----------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class PendingReads:
    """Plain reads that were sent together. ``sink`` is None when they have ended."""

    ledger_id: LedgerId
    entry_ids: list[int]
    first_txn: int
    deadline: float
    left: int
    """Entries without an answer."""
    sink: ReadSink | None

    def answer(self, entry_id: int, reply: wire.Reply) -> list[Delivery]:
        """One of the entries gets a reply of its own."""
        if (sink := self.sink) is None:
            return []
        self.count_down(1)
        return [AnswerRead(sink, entry_id, reply)]

    def give_up(self) -> list[Delivery]:
        """No reply is waited for any more."""
        sink, self.sink = self.sink, None
        return [] if sink is None else [FailReads(sink)]

    def count_down(self, count: int) -> None:
        """``count`` more entries have their answers."""
        self.left -= count
        if not self.left:
            self.sink = None

    @property
    def ended(self) -> bool:
        return self.sink is None


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request without its reply. ``waiter`` is None after its time limit."""

    key: Key
    fence: bool
    frame: bytes
    deadline: float
    waiter: Callback | None

    def answer(self, reply: wire.Reply) -> list[Delivery]:
        """The reply has come."""
        waiter, self.waiter = self.waiter, None
        return [] if waiter is None else [AnswerRequest(waiter, reply)]

    def give_up(self) -> list[Delivery]:
        """No reply is waited for any more."""
        waiter, self.waiter = self.waiter, None
        return [] if waiter is None else [FailRequest(waiter)]

    @property
    def ended(self) -> bool:
        return self.waiter is None


_BEYOND: Final = 1 << STREAM_SHIFT


class TransactionIds:
    """Transaction ids of requests: from 1 to 2**40 - 1, then again from 1. Those of streamed adds are greater."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last = 0

    def draw(self, count: int = 1) -> int:
        """Draw ``count`` consecutive ids. Returns the first."""
        last = self.last
        if last + count >= _BEYOND:
            last = 0
        self.last = last + count
        return last + 1


# -- what a matcher tells the connection to do ---------------------------------------------------------------


class AnswerStream(NamedTuple):
    """Call ``stream.answered(runs)``."""

    stream: StreamSink
    runs: list[AddRun]


class StreamLost(NamedTuple):
    """Call ``stream.lost`` with the reason."""

    stream: StreamSink


class DeliverReads(NamedTuple):
    """Call ``sink.found`` with the rest."""

    sink: ReadSink
    buffer: Buffer
    replies: ReadReplies
    picked: list[int]
    entry_ids: list[int]


class AnswerRead(NamedTuple):
    """Call ``sink.answered(entry_id, reply)``."""

    sink: ReadSink
    entry_id: int
    reply: wire.Reply


class FailReads(NamedTuple):
    """Call ``sink.lost`` with the reason."""

    sink: ReadSink


class AnswerRequest(NamedTuple):
    """Call ``waiter(reply)``."""

    waiter: Callback
    reply: wire.Reply


class FailRequest(NamedTuple):
    """Call ``waiter`` with the reason."""

    waiter: Callback


class SendFrame(NamedTuple):
    """Send this request, which had to wait for another one's reply."""

    frame: bytes


Delivery: TypeAlias = (
    AnswerStream | StreamLost | DeliverReads | AnswerRead | FailReads | AnswerRequest | FailRequest | SendFrame
)


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


def key_of_request(request: wire.Request) -> Key:
    """What the reply to ``request`` is matched by."""
    op = _OPS[type(request)]
    match request:
        case wire.AddEntry() | wire.ReadEntry():
            return (op, request.ledger_id, request.entry_id)
        case wire.BatchRead():
            return (op, request.request_id, 0)
        case _:
            return (op, 0, 0)


def key_of_reply(op: Operation, reply: wire.Reply) -> Key:
    """What ``reply`` is matched by."""
    match reply:
        case wire.AddReply() | wire.ReadReply():
            return (op, reply.ledger_id, reply.entry_id)
        case wire.BatchReply():
            return (op, reply.request_id, 0)
        case _:
            return (op, 0, 0)


def is_fence(request: wire.Request) -> bool:
    """Whether its reply promises that the ledger is fenced."""
    return bool(getattr(request, "fence", False))


def read_reply(replies: ReadReplies, i: int, buffer: Buffer) -> wire.ReadReply:
    """Reply ``i`` of a chunk, in the form of a reply that came by itself."""
    body = bytes(memoryview(buffer)[replies.begins[i] : replies.ends[i]])
    lac = replies.lacs[i] if replies.lacs[i] != NO_LAC else None
    return wire.ReadReply(Status.OK, LedgerId(replies.ledger_ids[i]), EntryId(replies.entry_ids[i]), body, lac)
