"""Protocol v3: replies find their requests by transaction id."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper import codec, wire
from bookkeeper.codec import ReplyRun
from bookkeeper.net.replies.by_transaction import TransactionMatcher
from bookkeeper.net.replies.deliveries import (
    AnswerRead,
    AnswerRequest,
    DeliverReads,
    Delivery,
    FailReads,
    FailRequest,
    StreamLost,
)
from bookkeeper.wire import Dialect, Operation, Status
from tests.bookkeeper.net.replies.waiters import LEDGER, Sink, Stream, Waiter, entries, header, no_entry, read
from tests.bookkeeper.validated import validated

Checked = validated(TransactionMatcher)

V3 = Dialect.V3


def txn_of(frame: bytes) -> int:
    decoded = wire.DialectDetector().decode(frame[4:])
    assert not isinstance(decoded, wire.RefusedFrame)
    return decoded[0].txn_id


@pytest.mark.rule("B13")
def test_a_reply_belongs_to_the_request_with_its_transaction_id_and_operation() -> None:
    matcher, one, other = Checked(), Waiter(1), Waiter(2)
    first = txn_of(matcher.send(read(1), 5.0, one))
    second = txn_of(matcher.send(read(1), 5.0, other))
    assert matcher.outstanding == 2
    answer = no_entry(1)
    assert matcher.on_reply(header(V3, Operation.FORCE_LEDGER, first), wire.BareReply(Status.OK)) == []
    assert matcher.on_reply(header(V3, Operation.READ, second), answer) == [AnswerRequest(other, answer)]
    assert matcher.on_reply(header(V3, Operation.READ, second), answer) == [], "a second reply belongs to nobody"
    assert matcher.on_reply(header(V3, Operation.READ, first), answer) == [AnswerRequest(one, answer)]
    assert matcher.outstanding == 0


def test_reads_sent_together_are_delivered_together_whatever_is_between() -> None:
    matcher, sink, single = Checked(), Sink(), Waiter()
    frames = matcher.send_reads(LEDGER, [4, 6, 8], 5.0, sink)
    assert len(codec.split_reads(bytearray(frames), 0, len(frames), 1 << 20, False).ends) == 3
    matcher.send(read(9), 5.0, single)
    cut, data = entries(V3, (3, 8), (4, 9), (1, 4), (77, 1))
    found, answered = matcher.on_read_replies(cut, data)
    assert found == DeliverReads(sink, data, cut, [0, 2], [8, 4])
    assert isinstance(answered, AnswerRequest) and answered.waiter is single
    assert matcher.outstanding == 1
    assert matcher.on_reply(header(V3, Operation.READ, 2), no_entry(6)) == [AnswerRead(sink, 6, no_entry(6))]
    assert matcher.outstanding == 0


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (0, 1, 1), (0, 1), (0,)])
def test_replies_to_all_reads_of_one_call_are_matched_in_whatever_order_they_come(order: tuple[int, ...]) -> None:
    matcher, sink, ids = Checked(), Sink(), [4, 6, 8]
    matcher.send_reads(LEDGER, ids, 5.0, sink)
    cut, data = entries(V3, *[(1 + at, ids[at]) for at in order])
    once = list(dict.fromkeys(order))
    assert matcher.on_read_replies(cut, data) == [
        DeliverReads(sink, data, cut, [order.index(at) for at in once], [ids[at] for at in once])
    ]
    assert matcher.outstanding == 3 - len(once)
    left = [at for at in range(3) if at not in once]
    if left:
        cut, data = entries(V3, *[(1 + at, ids[at]) for at in left])
        assert matcher.on_read_replies(cut, data) == [
            DeliverReads(sink, data, cut, list(range(len(left))), [ids[at] for at in left])
        ]
    assert matcher.outstanding == 0 and matcher.next_deadline() is None
    assert matcher.on_read_replies(cut, data) == [], "a second reply belongs to nobody"


def test_an_entry_that_answers_no_read_is_dropped() -> None:
    matcher = Checked()
    matcher.send(wire.ForceLedger(LEDGER), 5.0, Waiter())
    assert matcher.on_read_replies(*entries(V3, (1, 4))) == []
    assert matcher.outstanding == 1


def test_what_reaches_its_time_limit_is_given_up_and_its_late_reply_dropped() -> None:
    matcher, sink, waiter, patient = Checked(), Sink(), Waiter(), Waiter()
    matcher.send(read(1), 1.0, waiter)
    matcher.send_reads(LEDGER, [2, 3], 2.0, sink)
    matcher.send(read(4), 9.0, patient)
    assert matcher.next_deadline() == 1.0
    assert matcher.on_time(0.9) == []
    assert matcher.on_time(1.0) == [FailRequest(waiter)]
    matcher.on_read_replies(*entries(V3, (2, 2)))
    assert matcher.on_time(2.5) == [FailReads(sink)]
    assert matcher.next_deadline() == 9.0
    assert matcher.on_read_replies(*entries(V3, (1, 1), (3, 3))) == []
    assert matcher.outstanding == 1


@pytest.mark.rule("V1")
def test_a_loss_gives_everything_up_once_streams_first() -> None:
    matcher, sink, waiter, stream = Checked(), Sink(), Waiter(), Stream(1, LEDGER)
    matcher.send(read(1), 5.0, waiter)
    matcher.send_reads(LEDGER, [2, 3], 5.0, sink)
    matcher.streams.open(stream)
    assert matcher.on_lost() == [StreamLost(stream), FailRequest(waiter), FailReads(sink)]
    assert matcher.on_lost() == []
    assert (matcher.outstanding, matcher.next_deadline()) == (0, None)


def test_replies_to_a_stream_pass_whatever_waits() -> None:
    matcher, stream = Checked(), Stream(1, LEDGER)
    matcher.streams.open(stream)
    matcher.send(read(1), 5.0, Waiter())
    assert matcher.on_add_replies([ReplyRun(1, LEDGER, 0, 1000, 0)]) == ([(stream, [(0, 1000, Status.OK)])], [])


@pytest.mark.rule("B13")
@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_everybody_hears_once(seed: int) -> None:
    """Requests and reads in any order, replies that are duplicated, late or of nobody."""
    rng, matcher = Random(seed), Checked()
    heard: dict[object, int] = {}
    wanted: dict[object, int] = {}
    now = 0.0

    def hear(deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            match delivery:
                case DeliverReads():
                    heard[delivery.sink] = heard.get(delivery.sink, 0) + len(delivery.picked)
                case AnswerRead():
                    heard[delivery.sink] = heard.get(delivery.sink, 0) + 1
                case FailReads():
                    assert heard.get(delivery.sink, 0) < wanted[delivery.sink]
                    heard[delivery.sink] = wanted[delivery.sink]
                case AnswerRequest() | FailRequest():
                    heard[delivery.waiter] = heard.get(delivery.waiter, 0) + 1
                case _:
                    raise AssertionError(delivery)

    for _ in range(200):
        txns = [rng.randrange(1, matcher.ids.last + 2) for _ in range(3)]
        match rng.randrange(5):
            case 0:
                waiter = Waiter()
                wanted[waiter] = 1
                matcher.send(read(1), now + rng.random() * 5, waiter)
            case 1:
                sink, count = Sink(), rng.randrange(1, 6)
                wanted[sink] = count
                matcher.send_reads(LEDGER, list(range(count)), now + rng.random() * 5, sink)
            case 2:
                hear(matcher.on_read_replies(*entries(V3, *((txn, 1) for txn in txns))))
            case 3:
                hear(matcher.on_reply(header(V3, Operation.READ, txns[0]), no_entry(1)))
            case _:
                now += rng.random()
                hear(matcher.on_time(now))
    hear(matcher.on_lost())
    assert heard == wanted
