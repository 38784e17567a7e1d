"""Matching replies of protocol v2: a reply names its operation, ledger and entry, and carries no transaction id.

Requests with the same (operation, ledger, entry) wait in one line. Replies with that name answer them in the order in
which they were sent. Only a batch read carries an id of its own.

    asked ──▶ sent ──▶ answered          the next reply with its name came
      │         │
      │         └────▶ given up          its time limit passed: its place in the line stays, and takes the late reply
      ▼
    held ──▶ sent                        the requests before it are answered
      └────▶ given up                    its time limit passed, or the connection ended: it is never sent

Rules
    B13  A request gets one reply or is given up, once.
    R3   A fencing read and a plain read of one entry are never in flight together: the plain one's reply could be
         taken for the promise that the ledger is fenced. The later one is held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from bookkeeper import codec, wire
from bookkeeper.codec import ReadReplies, ReplyRun
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.net.replies.deliveries import (
    Callback,
    DeliverReads,
    Delivery,
    Key,
    PendingReads,
    PendingRequest,
    ReadSink,
    SendFrame,
    StreamReplies,
    TransactionIds,
    is_fence,
    key_of_reply,
    key_of_request,
    read_reply,
)
from bookkeeper.net.replies.stream_table import STATUS, StreamTable
from bookkeeper.seams import Buffer
from bookkeeper.wire import Dialect, Operation


@dataclass(slots=True, eq=False)
class _DeferredRead:
    """One read of several, which had to wait for a fence of the same entry and was sent alone."""

    key: Key
    frame: bytes
    reads: PendingReads

    @property
    def fence(self) -> bool:
        return False

    @property
    def ended(self) -> bool:
        return self.reads.ended


# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_READ: Final = Operation.READ

_Single = PendingRequest | _DeferredRead
_Waiting = PendingRequest | PendingReads | _DeferredRead


class OrderMatcher:
    """The requests and streams of one v2 connection."""

    __slots__ = ("_held", "_sent", "ids", "outstanding", "streams")

    def __init__(self) -> None:
        self.streams = StreamTable(Dialect.V2)
        self.ids = TransactionIds()
        """Transaction ids of batch reads."""
        self.outstanding = 0
        """Requests and entries without an answer, not counting streams."""
        self._sent: dict[Key, deque[_Waiting]] = {}
        self._held: dict[Key, deque[_Single]] = {}

    # -- what is sent -------------------------------------------------------------------------------------

    def send(self, request: wire.Request, deadline: float, waiter: Callback, context: wire.Context = ()) -> bytes:
        """The frame to send; empty if the request is held. In v2 it has no room for ``context``.

        Raises:
            ValueError: v2 has no such request.
        """
        if isinstance(request, wire.BatchRead):
            request = replace(request, request_id=self.ids.draw())
        frame = wire.encode_request(request, Dialect.V2)
        pending = PendingRequest(key_of_request(request), is_fence(request), frame, deadline, waiter)
        self.outstanding += 1
        if self._must_wait(pending.key, fence=pending.fence):
            self._held.setdefault(pending.key, deque()).append(pending)
            return b""
        self._sent.setdefault(pending.key, deque()).append(pending)
        return frame

    def send_reads(self, ledger_id: LedgerId, entry_ids: list[int], deadline: float, sink: ReadSink) -> Buffer:
        """The frames to send, joined, without those of held entries."""
        reads = PendingReads(ledger_id, entry_ids, 0, deadline, len(entry_ids), sink)
        self.outstanding += len(entry_ids)
        sent, lines, held = [], self._sent, self._held
        for entry_id in entry_ids:
            key = (_READ, ledger_id, entry_id)
            if key not in lines and not held:  # nearly always
                lines[key] = deque((reads,))
                sent.append(entry_id)
                continue
            if self._must_wait(key, fence=False):
                frame = codec.encode_reads(Dialect.V2, ledger_id, [entry_id], 0)
                self._held.setdefault(key, deque()).append(_DeferredRead(key, frame, reads))
                continue
            line = lines.get(key)
            if line is None:
                line = lines[key] = deque()
            line.append(reads)
            sent.append(entry_id)
        return codec.encode_reads(Dialect.V2, ledger_id, sent, 0) if sent else b""

    def _must_wait(self, key: Key, *, fence: bool) -> bool:
        """Whether another kind of read of this entry is in flight or waits (R3)."""
        line = self._sent.get(key)
        return key in self._held or (line is not None and _is_fence(line[0]) != fence)

    # -- what arrives -------------------------------------------------------------------------------------

    def _take(self, key: Key, deliveries: list[Delivery]) -> _Waiting | None:
        """The request that the next reply with this name answers. Sends what had to wait for it."""
        line = self._sent.get(key)
        if line is None:
            return None
        pending = line.popleft()
        if not line:
            del self._sent[key]
            if key in self._held:
                self._let_go(key, deliveries)
        return pending

    def _let_go(self, key: Key, deliveries: list[Delivery]) -> None:
        """Nothing with this name is in flight: send held reads up to the next one of the other kind."""
        held = self._held.pop(key)
        line: deque[_Waiting] = deque()
        while held and (held[0].ended or not line or held[0].fence == _is_fence(line[0])):
            pending = held.popleft()
            if not pending.ended:
                line.append(pending)
                deliveries.append(SendFrame(pending.frame))
        if line:
            self._sent[key] = line
        if held:
            self._held[key] = held

    def on_add_replies(self, runs: list[ReplyRun]) -> tuple[list[StreamReplies], list[Delivery]]:
        """Replies to adds. Adds that a recovery has sent as requests take their replies out of the runs."""
        if not self._sent:
            return self.streams.on_runs(runs), []
        deliveries: list[Delivery] = []
        rest = []
        for run in runs:
            _, ledger_id, first, count, status = run
            while count and (pending := self._take((Operation.ADD, ledger_id, first), deliveries)) is not None:
                reply = wire.AddReply(STATUS[status], LedgerId(ledger_id), EntryId(first))
                deliveries += self._answer(pending, first, reply)
                first, count = first + 1, count - 1
            if count:
                rest.append(run if count == run.n else run._replace(first=first, n=count))
        return self.streams.on_runs(rest), deliveries

    def on_read_replies(self, replies: ReadReplies, buffer: Buffer) -> list[Delivery]:
        """Replies that hold an entry. Reads that were sent together get theirs together."""
        deliveries: list[Delivery] = []
        current: PendingReads | None = None
        picked: list[int] = []
        entries: list[int] = []
        lines, held = self._sent, self._held
        for i, entry_id in enumerate(replies.entry_ids):
            key = (_READ, replies.ledger_ids[i], entry_id)
            line = lines.get(key)
            if line is not None and len(line) == 1 and not held:  # nearly always: does what _take does
                del lines[key]
                pending: _Waiting | None = line[0]
            else:
                pending = self._take(key, deliveries)
            if not isinstance(pending, PendingReads):
                if pending is not None:
                    deliveries += self._answer(pending, entry_id, read_reply(replies, i, buffer))
                continue
            if pending is not current:
                if current is not None:
                    self._found(current, picked)
                current, picked, entries = pending, [], []
                if pending.sink is not None:
                    deliveries.append(DeliverReads(pending.sink, buffer, replies, picked, entries))
            picked.append(i)
            entries.append(entry_id)
        if current is not None:
            self._found(current, picked)
        return deliveries

    def _found(self, reads: PendingReads, picked: list[int]) -> None:
        if not reads.ended:
            self.outstanding -= len(picked)
            reads.count_down(len(picked))

    def _answer(self, pending: _Waiting, entry_id: int, reply: wire.Reply) -> list[Delivery]:
        if not pending.ended:
            self.outstanding -= 1
        if isinstance(pending, PendingRequest):
            return pending.answer(reply)
        return (pending.reads if isinstance(pending, _DeferredRead) else pending).answer(entry_id, reply)

    def on_reply(self, header: wire.RequestHeader, reply: wire.Reply) -> list[Delivery]:
        """Any other reply."""
        deliveries: list[Delivery] = []
        key = key_of_reply(header.op, reply)
        pending = self._take(key, deliveries)
        if pending is not None:
            return deliveries + self._answer(pending, key[2], reply)
        return self.streams.on_single(header, reply) if header.op is Operation.ADD else []

    # -- time and the end ---------------------------------------------------------------------------------

    def _open(self) -> list[PendingRequest | PendingReads]:
        """All that wait, each once. Held reads are part of the reads with which they were requested."""
        found: dict[PendingRequest | PendingReads, None] = {}
        for line in self._lines():
            for pending in line:
                whole = pending.reads if isinstance(pending, _DeferredRead) else pending
                if not whole.ended:
                    found[whole] = None
        return list(found)

    def _lines(self) -> list[Iterable[_Waiting]]:
        return [*self._sent.values(), *self._held.values()]

    def next_deadline(self) -> float | None:
        """The earliest time limit."""
        return min((pending.deadline for pending in self._open()), default=None)

    def on_time(self, now: float) -> list[Delivery]:
        """Give up requests that have reached their time limit. Their places in the lines stay if they were sent."""
        return self._give_up([pending for pending in self._open() if pending.deadline <= now])

    def on_lost(self) -> list[Delivery]:
        """The connection has ended: give up everything, streams first."""
        deliveries = self.streams.on_lost() + self._give_up(self._open())
        self._sent, self._held = {}, {}
        return deliveries

    def _give_up(self, some: list[PendingRequest | PendingReads]) -> list[Delivery]:
        deliveries: list[Delivery] = []
        for pending in some:
            self.outstanding -= pending.left if isinstance(pending, PendingReads) else 1
            deliveries += pending.give_up()
        return deliveries

    def validate_state(self) -> None:
        """Check what must hold between any two calls. For tests."""
        self.streams.validate_state()
        for key, line in self._sent.items():
            assert line, "an empty line is kept"
            assert len({_is_fence(pending) for pending in line}) == 1, "a fence and a plain read are in flight (R3)"
            for pending in line:
                assert isinstance(pending, PendingReads) or pending.key == key, (
                    "a request waits under another one's name"
                )
        for key, held in self._held.items():
            assert held and key in self._sent, "a request is held although nothing in flight keeps it back"
        places = self._places()
        requests = [pending for pending in self._open() if isinstance(pending, PendingRequest)]
        for reads in (pending for pending in self._open() if isinstance(pending, PendingReads)):
            assert reads.left == places[reads], "entries without an answer have no place in a line"
        assert self.outstanding == len(requests) + sum(r.left for r in places if not r.ended), "outstanding is wrong"

    def _places(self) -> dict[PendingReads, int]:
        places: dict[PendingReads, int] = {}
        for line in self._lines():
            for pending in line:
                if not isinstance(pending, PendingRequest):
                    reads = pending.reads if isinstance(pending, _DeferredRead) else pending
                    places[reads] = places.get(reads, 0) + 1
        return places


def _is_fence(pending: _Waiting) -> bool:
    return not isinstance(pending, PendingReads) and pending.fence
