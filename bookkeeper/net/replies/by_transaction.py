"""Matching replies of protocol v3: every reply carries the transaction id and the operation of its request.

    sent ──▶ waits ──▶ answered      the reply with its transaction id came
               │
               ├─────▶ given up      its time limit passed: the id is forgotten, a later reply is dropped
               └─────▶ given up      the connection ended

Transaction ids of requests are below 2**40. Those of streamed adds are ``(stream id << 40) + entry id``; this machine
keeps nothing for them (:mod:`~bookkeeper.net.replies.stream_table`).

Rules
    B13  A request gets one reply or is given up, once. A reply with an unknown transaction id, or with
         another operation, is dropped.
"""

from __future__ import annotations

from array import array
from dataclasses import replace

from bookkeeper import codec, wire
from bookkeeper.codec import STREAM_SHIFT, ReadReplies, ReplyRun
from bookkeeper.ids import LedgerId
from bookkeeper.net.replies.deliveries import (
    Callback,
    DeliverReads,
    Delivery,
    PendingReads,
    PendingRequest,
    ReadSink,
    StreamReplies,
    TransactionIds,
    is_fence,
    key_of_request,
    read_reply,
)
from bookkeeper.net.replies.stream_table import StreamTable
from bookkeeper.seams import Buffer
from bookkeeper.wire import Dialect, Operation


class TransactionMatcher:
    """The requests and streams of one v3 connection."""

    __slots__ = ("_waiting", "ids", "outstanding", "streams")

    def __init__(self) -> None:
        self.streams = StreamTable(Dialect.V3)
        self.ids = TransactionIds()
        self.outstanding = 0
        """Requests and entries without an answer, not counting streams."""
        self._waiting: dict[int, PendingRequest | PendingReads] = {}
        """Waiting requests by transaction id. Reads that were sent together are under each of their ids."""

    # -- what is sent -------------------------------------------------------------------------------------

    def send(self, request: wire.Request, deadline: float, waiter: Callback, context: wire.Context = ()) -> bytes:
        """The frame to send. Raises ValueError if v3 has no such request."""
        txn = self.ids.draw()
        if isinstance(request, wire.BatchRead):
            request = replace(request, request_id=txn)
        frame = wire.encode_request(request, Dialect.V3, txn, context)
        self._waiting[txn] = PendingRequest(key_of_request(request), is_fence(request), frame, deadline, waiter)
        self.outstanding += 1
        return frame

    def send_reads(self, ledger_id: LedgerId, entry_ids: list[int], deadline: float, sink: ReadSink) -> Buffer:
        """The frames to send, joined."""
        count = len(entry_ids)
        txn = self.ids.draw(count)
        reads = PendingReads(ledger_id, entry_ids, txn, deadline, count, sink)
        if count == 1:
            self._waiting[txn] = reads
        else:
            self._waiting.update(dict.fromkeys(range(txn, txn + count), reads))
        self.outstanding += count
        return codec.encode_reads(Dialect.V3, ledger_id, entry_ids, txn)

    # -- what arrives -------------------------------------------------------------------------------------

    def on_add_replies(self, runs: list[ReplyRun]) -> tuple[list[StreamReplies], list[Delivery]]:
        """Replies to streamed adds. There are no other deliveries, because adds that were sent as requests have
        requests' transaction ids."""
        return self.streams.on_runs(runs), []

    def on_read_replies(self, replies: ReadReplies, buffer: Buffer) -> list[Delivery]:
        """Replies that hold an entry. Reads that were sent together get theirs together."""
        waiting, txns = self._waiting, replies.txns
        first = waiting.get(txns[0]) if txns else None
        if (
            isinstance(first, PendingReads)
            and len(txns) == first.left == len(first.entry_ids)
            and (whole := self._all_found(first, txns, buffer, replies)) is not None
        ):
            return [whole]
        deliveries: list[Delivery] = []
        current: PendingReads | None = None
        picked: list[int] = []
        entries: list[int] = []
        for i, txn in enumerate(txns):
            pending = waiting.get(txn)
            if not isinstance(pending, PendingReads):
                if pending is not None and pending.key[0] is Operation.READ:
                    del waiting[txn]
                    self.outstanding -= 1
                    deliveries += pending.answer(read_reply(replies, i, buffer))
                continue
            del waiting[txn]
            if pending is not current:
                if current is not None:
                    self._found(current, len(picked))
                current, picked, entries = pending, [], []
                if pending.sink is not None:
                    deliveries.append(DeliverReads(pending.sink, buffer, replies, picked, entries))
            picked.append(i)
            entries.append(pending.entry_ids[txn - pending.first_txn])
        if current is not None:
            self._found(current, len(picked))
        return deliveries

    def _all_found(
        self, reads: PendingReads, txns: array[int], buffer: Buffer, replies: ReadReplies
    ) -> DeliverReads | None:
        """Most often a chunk is the replies to all reads that were sent together, in order. None: it is not."""
        count, sink = len(txns), reads.sink
        if sink is None or (count > 1 and txns.tolist() != list(range(reads.first_txn, reads.first_txn + count))):
            return None
        for txn in txns:
            del self._waiting[txn]
        self.outstanding -= count
        reads.left, reads.sink = 0, None
        return DeliverReads(sink, buffer, replies, list(range(count)), reads.entry_ids)

    def _found(self, reads: PendingReads, count: int) -> None:
        self.outstanding -= count
        reads.count_down(count)

    def on_reply(self, header: wire.RequestHeader, reply: wire.Reply) -> list[Delivery]:
        """Any other reply."""
        txn = header.txn_id
        pending = self._waiting.get(txn)
        op = Operation.READ if isinstance(pending, PendingReads) else pending.key[0] if pending is not None else None
        if pending is None or header.op is not op:
            return self.streams.on_single(header, reply) if header.op is Operation.ADD else []
        del self._waiting[txn]
        self.outstanding -= 1
        if isinstance(pending, PendingReads):
            return pending.answer(pending.entry_ids[txn - pending.first_txn], reply)
        return pending.answer(reply)

    # -- time and the end ---------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """The earliest time limit."""
        return min((pending.deadline for pending in self._waiting.values()), default=None)

    def on_time(self, now: float) -> list[Delivery]:
        """Give up requests that have reached their time limit."""
        late = [pending for pending in dict.fromkeys(self._waiting.values()) if pending.deadline <= now]
        return self._give_up(late)

    def on_lost(self) -> list[Delivery]:
        """The connection has ended: give up everything, streams first."""
        return self.streams.on_lost() + self._give_up(list(dict.fromkeys(self._waiting.values())))

    def _give_up(self, some: list[PendingRequest | PendingReads]) -> list[Delivery]:
        deliveries: list[Delivery] = []
        for pending in some:
            self.outstanding -= pending.left if isinstance(pending, PendingReads) else 1
            deliveries += pending.give_up()
        if some:
            self._waiting = {txn: pending for txn, pending in self._waiting.items() if not pending.ended}
        return deliveries

    def validate_state(self) -> None:
        """Check what must hold between any two calls. For tests."""
        self.streams.validate_state()
        requests = [pending for pending in self._waiting.values() if isinstance(pending, PendingRequest)]
        places: dict[PendingReads, list[int]] = {}
        for txn, pending in self._waiting.items():
            assert 0 < txn < 1 << STREAM_SHIFT, "a request has a transaction id of a stream"
            assert not pending.ended, "a request is kept that nobody waits for"
            if isinstance(pending, PendingReads):
                assert 0 <= txn - pending.first_txn < len(pending.entry_ids), "a transaction id belongs to no entry"
                places.setdefault(pending, []).append(txn)
        assert len(requests) == len(set(requests)), "a request has two transaction ids"
        for reads, txns in places.items():
            assert reads.left == len(txns), "entries without an answer have no transaction id"
        assert self.outstanding == len(requests) + sum(reads.left for reads in places), "outstanding is wrong"
