"""Protocol v2: replies find their requests by name, in the order of the requests."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper import wire
from bookkeeper.codec import ReplyRun
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.net.replies.by_order import OrderMatcher
from bookkeeper.net.replies.deliveries import (
    AnswerRead,
    AnswerRequest,
    DeliverReads,
    Delivery,
    FailReads,
    FailRequest,
    SendFrame,
    StreamLost,
)
from bookkeeper.wire import Dialect, Operation, Status
from tests.bookkeeper.net.replies.waiters import KEY, LEDGER, Sink, Stream, Waiter, entries, header, no_entry, read
from tests.bookkeeper.validated import validated

Checked = validated(OrderMatcher)

V2 = Dialect.V2


def answer(matcher: OrderMatcher, entry: int) -> list[Delivery]:
    """One reply to a read of ``entry``."""
    return matcher.on_reply(header(V2, Operation.READ), no_entry(entry))


def waiters(deliveries: list[Delivery]) -> list[object]:
    return [d.waiter for d in deliveries if isinstance(d, AnswerRequest)]


@pytest.mark.rule("B13")
def test_replies_of_one_name_answer_in_the_order_of_the_requests() -> None:
    matcher, one, two, other = Checked(), Waiter(1), Waiter(2), Waiter("other")
    for entry, waiter in ((1, one), (5, other), (1, two)):
        assert matcher.send(read(entry), 5.0, waiter)
    assert waiters(answer(matcher, 1)) == [one]
    assert waiters(answer(matcher, 5)) == [other]
    assert waiters(answer(matcher, 1)) == [two]
    assert answer(matcher, 1) == []
    assert matcher.outstanding == 0


@pytest.mark.rule("B13")
def test_what_was_given_up_keeps_its_place_for_the_late_reply() -> None:
    matcher, late, next_ = Checked(), Waiter("late"), Waiter("next")
    matcher.send(read(1), 1.0, late)
    matcher.send(read(1), 9.0, next_)
    assert matcher.next_deadline() == 1.0
    assert matcher.on_time(1.0) == [FailRequest(late)]
    assert (matcher.outstanding, matcher.next_deadline()) == (1, 9.0)
    assert answer(matcher, 1) == []
    assert waiters(answer(matcher, 1)) == [next_]


@pytest.mark.rule("R3")
def test_a_fence_and_a_plain_read_of_one_entry_are_never_in_flight_together() -> None:
    matcher, plain, fence, again = Checked(), Waiter("plain"), Waiter("fence"), Waiter("again")
    assert matcher.send(read(1), 5.0, plain)
    assert matcher.send(read(1, fence=True), 5.0, fence) == b""
    assert matcher.send(read(1), 5.0, again) == b"", "it would pass the fence"
    sent, answered = answer(matcher, 1)
    assert isinstance(sent, SendFrame) and sent.frame == wire.encode_request(read(1, fence=True), V2)
    assert isinstance(answered, AnswerRequest) and answered.waiter is plain
    sent, answered = answer(matcher, 1)
    assert isinstance(sent, SendFrame) and sent.frame == wire.encode_request(read(1), V2)
    assert isinstance(answered, AnswerRequest) and answered.waiter is fence
    assert waiters(answer(matcher, 1)) == [again]


@pytest.mark.rule("R3")
def test_what_was_given_up_while_it_was_held_is_never_sent() -> None:
    matcher, fence = Checked(), Waiter("fence")
    matcher.send(read(1), 5.0, Waiter())
    matcher.send(read(1, fence=True), 1.0, fence)
    matcher.send(read(1, fence=True), 1.0, fence)
    assert matcher.on_time(2.0) == [FailRequest(fence)] * 2
    assert [type(delivery) for delivery in answer(matcher, 1)] == [AnswerRequest]
    assert matcher.outstanding == 0


@pytest.mark.rule("R3")
def test_of_reads_sent_together_one_waits_behind_a_fence_and_the_others_pass() -> None:
    matcher, fence, sink = Checked(), Waiter("fence"), Sink()
    matcher.send(read(3, fence=True), 5.0, fence)
    frames = matcher.send_reads(LEDGER, [2, 3, 4], 5.0, sink)
    assert bytes(frames) == wire.encode_request(read(2), V2) + wire.encode_request(read(4), V2)
    assert matcher.outstanding == 4
    cut, data = entries(V2, (0, 2), (0, 4))
    assert matcher.on_read_replies(cut, data) == [DeliverReads(sink, data, cut, [0, 1], [2, 4])]
    sent, answered = answer(matcher, 3)
    assert isinstance(sent, SendFrame) and sent.frame == wire.encode_request(read(3), V2)
    assert isinstance(answered, AnswerRequest) and answered.waiter is fence
    assert answer(matcher, 3) == [AnswerRead(sink, 3, no_entry(3))]
    assert matcher.outstanding == 0


def test_reads_with_a_held_one_among_them_are_given_up_once() -> None:
    matcher, sink = Checked(), Sink()
    matcher.send(read(3, fence=True), 9.0, Waiter())
    matcher.send_reads(LEDGER, [2, 3], 1.0, sink)
    assert matcher.on_time(1.0) == [FailReads(sink)]
    assert [type(delivery) for delivery in answer(matcher, 3)] == [AnswerRequest], "the held one is not sent"
    assert answer(matcher, 2) == []
    assert matcher.outstanding == 0


def test_adds_of_a_recovery_take_their_replies_out_of_a_writers_run() -> None:
    matcher, stream, waiter = Checked(), Stream(1, LEDGER), Waiter()
    matcher.streams.open(stream)
    for entry in (4, 5):
        matcher.send(wire.AddEntry(LEDGER, EntryId(entry), KEY, b"x" * 32), 5.0, waiter)
    streams, others = matcher.on_add_replies([ReplyRun(-1, LEDGER, 4, 6, 0), ReplyRun(-1, LedgerId(99), 0, 1, 0)])
    assert streams == [(stream, [(6, 4, Status.OK)])]
    assert others == [AnswerRequest(waiter, wire.AddReply(Status.OK, LEDGER, EntryId(e))) for e in (4, 5)]
    assert matcher.outstanding == 0


def test_a_batch_read_is_matched_by_an_id_of_its_own() -> None:
    matcher, waiters_ = Checked(), [Waiter(1), Waiter(2)]
    for waiter in waiters_:
        matcher.send(wire.BatchRead(LEDGER, EntryId(0), 0, 10, 0), 5.0, waiter)
    replies = [wire.BatchReply(Status.OK, LEDGER, EntryId(0), i, b"") for i in (2, 1)]
    got = [matcher.on_reply(header(V2, Operation.BATCH_READ), reply) for reply in replies]
    assert got == [[AnswerRequest(waiters_[1], replies[0])], [AnswerRequest(waiters_[0], replies[1])]]


@pytest.mark.rule("V1")
def test_a_loss_gives_everything_up_once_streams_first() -> None:
    matcher, sink, waiter, fence, stream = Checked(), Sink(), Waiter(), Waiter("fence"), Stream(1, LEDGER)
    matcher.send(read(1), 5.0, waiter)
    matcher.send(read(1, fence=True), 5.0, fence)
    matcher.send_reads(LEDGER, [1, 2], 5.0, sink)
    matcher.streams.open(stream)
    lost = matcher.on_lost()
    assert lost[0] == StreamLost(stream)
    assert sorted(lost[1:], key=str) == sorted([FailRequest(waiter), FailRequest(fence), FailReads(sink)], key=str)
    assert matcher.on_lost() == []
    assert (matcher.outstanding, matcher.next_deadline()) == (0, None)


@pytest.mark.rule("B13", "R3")
@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_everybody_hears_once(seed: int) -> None:
    """Plain and fencing reads of few entries, replies in the bookie's order, late ones and some of nobody."""
    rng, matcher = Random(seed), Checked()
    heard: dict[object, int] = {}
    wanted: dict[object, int] = {}
    on_the_way: list[int] = []
    now = 0.0

    def hear(deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            match delivery:
                case SendFrame():
                    on_the_way.append(entry_of(delivery.frame))
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

    def entry_of(frame: bytes) -> int:
        decoded = wire.DialectDetector(v2=True).decode(frame[4:])
        assert not isinstance(decoded, wire.RefusedFrame) and isinstance(decoded[1], wire.ReadEntry)
        return decoded[1].entry_id

    for _ in range(300):
        match rng.randrange(5):
            case 0:
                waiter = Waiter()
                wanted[waiter] = 1
                frame = matcher.send(read(rng.randrange(3), fence=rng.random() < 0.5), now + rng.random() * 5, waiter)
                if frame:
                    on_the_way.append(entry_of(frame))
            case 1:
                sink, ids = Sink(), rng.sample(range(3), rng.randrange(1, 4))
                wanted[sink] = len(ids)
                frames = bytes(matcher.send_reads(LEDGER, ids, now + rng.random() * 5, sink))
                while frames:
                    size = 4 + int.from_bytes(frames[:4], "big")
                    on_the_way.append(entry_of(frames[:size]))
                    frames = frames[size:]
            case 2 if on_the_way:
                hear(matcher.on_read_replies(*entries(V2, (0, on_the_way.pop(rng.randrange(len(on_the_way)))))))
            case 3 if on_the_way:
                entry = on_the_way.pop(rng.randrange(len(on_the_way)))
                hear(matcher.on_reply(header(V2, Operation.READ), no_entry(entry)))
            case _:
                now += rng.random() / 2
                hear(matcher.on_time(now))
    hear(matcher.on_lost())
    assert heard == wanted
