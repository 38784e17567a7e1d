"""What waits, and what a reply is matched by."""

from __future__ import annotations

import pytest

from bookkeeper import wire
from bookkeeper.codec import STREAM_SHIFT
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.net.replies.deliveries import (
    AnswerRead,
    AnswerRequest,
    FailReads,
    FailRequest,
    PendingReads,
    PendingRequest,
    TransactionIds,
    is_fence,
    key_of_reply,
    key_of_request,
    read_reply,
)
from bookkeeper.wire import Dialect, Operation, Status
from tests.bookkeeper.net.replies.waiters import KEY, LEDGER, Sink, Waiter, entries, no_entry, read


@pytest.mark.rule("B13")
def test_a_request_ends_once() -> None:
    waiter = Waiter()
    for ending in ("answer", "give_up"):
        pending = PendingRequest((Operation.READ, LEDGER, 1), False, b"", 5.0, waiter)
        first = pending.answer(no_entry(1)) if ending == "answer" else pending.give_up()
        assert first == [AnswerRequest(waiter, no_entry(1)) if ending == "answer" else FailRequest(waiter)]
        assert pending.ended
        assert pending.answer(no_entry(1)) == pending.give_up() == []


@pytest.mark.rule("B13")
def test_reads_that_were_sent_together_end_with_their_last_entry_or_are_given_up() -> None:
    sink = Sink()
    reads = PendingReads(LEDGER, [3, 5], 1, 5.0, 2, sink)
    assert reads.answer(3, no_entry(3)) == [AnswerRead(sink, 3, no_entry(3))]
    assert reads.answer(5, no_entry(5)) == [AnswerRead(sink, 5, no_entry(5))]
    assert reads.ended
    assert reads.give_up() == []
    late = PendingReads(LEDGER, [3, 5], 1, 5.0, 2, sink)
    assert late.give_up() == [FailReads(sink)]
    assert late.answer(3, no_entry(3)) == []


def test_transaction_ids_begin_again_before_they_reach_the_streams() -> None:
    ids = TransactionIds()
    assert (ids.draw(), ids.draw(3), ids.draw()) == (1, 2, 5)
    ids.last = (1 << STREAM_SHIFT) - 3
    assert ids.draw(2) == (1 << STREAM_SHIFT) - 2
    assert ids.draw() == 1
    ids.last = (1 << STREAM_SHIFT) - 3
    assert ids.draw(3) == 1, "consecutive ids stay together"


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        (read(4), no_entry(4)),
        (wire.AddEntry(LEDGER, EntryId(4), KEY, b""), wire.AddReply(Status.OK, LEDGER, EntryId(4))),
        (wire.BatchRead(LEDGER, EntryId(4), 9, 1, 0), wire.BatchReply(Status.OK, LEDGER, EntryId(4), 9)),
        (wire.Auth("p", b""), wire.AuthReply(Status.OK, "p", b"")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_request_and_its_reply_have_one_key(request_: wire.Request, reply: wire.Reply) -> None:
    key = key_of_request(request_)
    assert key_of_reply(key[0], reply) == key


def test_a_fence_is_told_from_a_plain_read() -> None:
    assert is_fence(read(1, fence=True))
    assert not is_fence(read(1))
    assert not is_fence(wire.ForceLedger(LedgerId(1)))


def test_a_reply_of_a_chunk_reads_like_one_that_came_by_itself() -> None:
    cut, data = entries(Dialect.V3, (1, 4), (2, 5))
    assert read_reply(cut, 1, data) == wire.ReadReply(Status.OK, LEDGER, EntryId(5), b"5")
