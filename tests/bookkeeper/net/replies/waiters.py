"""Who waits in the tests of the reply matchers. Matchers name them in deliveries and never call them."""

from __future__ import annotations

from bookkeeper import codec, wire
from bookkeeper.codec import ReadReplies
from bookkeeper.errors import BookieError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.net.replies.deliveries import AddRun
from bookkeeper.seams import Buffer
from bookkeeper.wire import Dialect, Operation, RequestHeader, Status

LEDGER = LedgerId(7)
KEY = b"k" * 20


class Stream:
    """A stream of adds."""

    def __init__(self, stream_id: int, ledger_id: int) -> None:
        self.stream_id = stream_id
        self.ledger_id = LedgerId(ledger_id)

    def answered(self, runs: list[AddRun]) -> None:
        raise AssertionError("a matcher called it")

    def lost(self, error: BookieError) -> None:
        raise AssertionError("a matcher called it")


class Sink:
    """Who asked for several entries."""

    def found(self, buffer: Buffer, replies: ReadReplies, picked: list[int], entry_ids: list[int]) -> None:
        raise AssertionError("a matcher called it")

    def answered(self, entry_id: int, reply: wire.Reply | BookieError) -> None:
        raise AssertionError("a matcher called it")

    def lost(self, error: BookieError) -> None:
        raise AssertionError("a matcher called it")


class Waiter:
    """Who sent one request."""

    def __init__(self, name: object = "") -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<waiter {self.name}>"

    def __call__(self, reply: wire.Reply | BookieError) -> None:
        raise AssertionError("a matcher called it")


def read(entry: int, *, fence: bool = False) -> wire.ReadEntry:
    return wire.ReadEntry(LEDGER, EntryId(entry), master_key=KEY if fence else None, fence=fence)


def header(dialect: Dialect, op: Operation, txn: int = 0) -> RequestHeader:
    return RequestHeader(dialect, op, txn, version=int(dialect))


def no_entry(entry: int) -> wire.ReadReply:
    return wire.ReadReply(Status.NO_ENTRY, LEDGER, EntryId(entry))


def entries(dialect: Dialect, *replies: tuple[int, int]) -> tuple[ReadReplies, bytearray]:
    """Replies that hold an entry, as the codec cuts them: (transaction id, entry id) of each."""
    data = bytearray()
    for txn, entry in replies:
        reply = wire.ReadReply(Status.OK, LEDGER, EntryId(entry), b"%d" % entry)
        data += wire.encode_reply(header(dialect, Operation.READ, txn), reply)
    cut = codec.split_read_replies(data, 0, len(data), 1 << 20, dialect is Dialect.V2)
    assert len(cut.txns) == len(replies)
    return cut, data
