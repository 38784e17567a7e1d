"""When a connection is not read: every transition of the drawing, and any order of them."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.bookie.connections.flow_control import (
    TURN_REQUESTS,
    TYPICAL_REPLY,
    TYPICAL_REPLY_MIN,
    UNSENT_HIGH,
    AdmissionFlow,
    FlowControl,
    ReplyFlow,
    Slowness,
)
from tests.bookkeeper.validated import validated

Flow = validated(FlowControl)


@pytest.mark.rule("X32")
def test_requests_are_taken_while_little_is_owed() -> None:
    flow = Flow()
    assert not flow.pause_for_replies(UNSENT_HIGH)
    flow.on_request_waits()
    assert not flow.pause_for_replies(UNSENT_HIGH - TYPICAL_REPLY)
    assert not flow.held


@pytest.mark.rule("X32")
def test_too_many_that_wait_for_the_disk_hold_the_connection_until_few_enough_are_left() -> None:
    flow = Flow()
    count = UNSENT_HIGH // TYPICAL_REPLY + 1
    for _ in range(count):
        flow.on_request_waits()
    assert flow.pause_for_replies(0)
    assert (flow.replies, flow.held) == (ReplyFlow.AWAITING_ANSWERS, True)
    assert not flow.on_flushed(), "the next turn of the loop changes nothing"
    assert not flow.on_answered(TYPICAL_REPLY, TYPICAL_REPLY), "as many bytes are unsent now"
    assert flow.on_answered(TYPICAL_REPLY, 0), "they are sent"
    assert (flow.replies, flow.waiting, flow.held) == (ReplyFlow.FLOWING, count - 2, False)


@pytest.mark.rule("X32")
def test_the_last_answer_lets_the_connection_go_whatever_is_unsent() -> None:
    flow = Flow()
    flow.on_request_waits()
    assert flow.pause_for_replies(UNSENT_HIGH)
    assert flow.on_answered(10, 2 * UNSENT_HIGH), "the client holds it from now on, if it does not take them"


@pytest.mark.rule("X32")
def test_replies_that_only_have_to_leave_hold_it_for_a_turn_of_the_loop() -> None:
    flow = Flow()
    assert flow.pause_for_replies(UNSENT_HIGH + 1)
    assert flow.replies is ReplyFlow.AWAITING_FLUSH
    assert flow.on_flushed()
    assert not flow.on_flushed()
    assert not flow.held


@pytest.mark.rule("X32a")
def test_after_a_thousand_requests_the_others_have_their_turn() -> None:
    flow = Flow()
    flow.on_taken(TURN_REQUESTS - 1)
    assert not flow.pause_for_turn()
    assert not flow.pause_for_replies(0)
    flow.on_taken()
    flow.on_request_waits()
    assert flow.pause_for_replies(0)
    assert flow.replies is ReplyFlow.AWAITING_FLUSH, "whatever waits for the disk"
    assert not flow.pause_for_turn(), "it is over already"
    assert not flow.on_answered(10, 0)
    assert flow.on_flushed()
    assert not flow.pause_for_replies(0), "the next turn begins at nothing"
    flow.on_taken(TURN_REQUESTS)
    assert flow.pause_for_replies(UNSENT_HIGH * 2)
    assert flow.on_flushed()
    assert not flow.pause_for_turn(), "one pause is enough"


def test_the_assumed_size_of_a_reply_follows_larger_ones_at_once_and_smaller_ones_slowly() -> None:
    flow = Flow()
    flow.on_answered_at_once(1_000_000)
    assert flow.typical == 1_000_000
    flow.on_answered_at_once(10)
    assert flow.typical == 875_000
    for _ in range(100):
        flow.on_answered_at_once(10)
    assert flow.typical == TYPICAL_REPLY_MIN


@pytest.mark.rule("X32", "X32a")
def test_a_run_that_is_answered_at_once_counts_as_a_request_and_waits_for_room_after_its_chunk() -> None:
    flow = Flow()
    for _ in range(TURN_REQUESTS):
        assert not flow.pause_for_turn()
        flow.on_run_answered(1_000_000)
    assert flow.typical == 1_000_000
    assert flow.pause_for_turn()
    assert flow.on_chunk_end(crowded=True)


@pytest.mark.rule("X32", "X33")
def test_only_a_chunk_with_requests_that_have_no_reserve_waits_for_room() -> None:
    flow = Flow()
    assert not flow.on_chunk_end(crowded=True), "fences and recovery are always read"
    flow.on_charged()
    assert not flow.on_chunk_end(crowded=False)
    assert flow.admission is AdmissionFlow.IDLE
    assert not flow.on_chunk_end(crowded=True), "that chunk is over"
    flow.on_charged()
    flow.on_charged()
    assert flow.on_chunk_end(crowded=True)
    assert (flow.admission, flow.held) == (AdmissionFlow.QUEUED, True)
    assert flow.on_room()
    assert not flow.on_room()
    assert not flow.held


@pytest.mark.rule("X32", "X34")
def test_a_client_that_takes_no_replies_is_held_and_too_slow_after_a_while() -> None:
    flow = Flow()
    assert flow.on_stalled(10.0)
    assert not flow.on_stalled(11.0), "it is held for it once, since the first time"
    assert flow.slowness(10.0, 10.0) is None
    assert flow.slowness(10.5, 10.5) is Slowness.REPLIES
    assert flow.on_unstalled()
    assert not flow.on_unstalled()
    assert flow.slowness(99.0, 99.0) is None


@pytest.mark.rule("X34")
def test_the_time_for_the_rest_of_a_frame_begins_anew_with_what_is_used_and_ends_when_nothing_is_read() -> None:
    flow = Flow()
    flow.on_partial_frame(10.0, progress=False)
    flow.on_partial_frame(11.0, progress=False)
    assert flow.slowness(10.5, 0.0) is Slowness.FRAME, "more bytes of one frame are no progress"
    flow.on_partial_frame(12.0, progress=True)
    assert flow.slowness(10.5, 0.0) is None
    flow.on_no_partial_frame()
    assert flow.slowness(99.0, 0.0) is None
    assert flow.pause_for_replies(UNSENT_HIGH + 1)
    flow.on_partial_frame(13.0, progress=True)
    assert flow.slowness(99.0, 0.0) is None, "it is not read"


def test_each_part_holds_by_itself() -> None:
    flow = Flow()
    flow.on_charged()
    assert flow.pause_for_replies(UNSENT_HIGH + 1)
    assert flow.on_stalled(1.0)
    assert flow.on_chunk_end(crowded=True)
    for release in (flow.on_unstalled, flow.on_room, flow.on_flushed):
        assert flow.held
        assert release()
    assert not flow.held
    assert repr(flow) == "<flowing, idle, reading, 0 waiting>"


@pytest.mark.rule("X32")
@pytest.mark.parametrize("seed", range(20))
def test_in_any_order_pauses_and_resumes_pair_and_what_holds_ends(seed: int) -> None:
    """A shell that pauses and resumes by count, as a connection does."""
    rng, flow = Random(seed), Flow()
    pauses, now, unsent = 0, 0.0, 0

    def paused(step: bool) -> None:
        nonlocal pauses
        pauses += step

    def resumed(step: bool) -> None:
        nonlocal pauses
        pauses -= step

    for _ in range(500):
        now += rng.random()
        unsent = rng.randrange(UNSENT_HIGH * 2)
        if not pauses:  # a chunk
            for _ in range(rng.randrange(40)):
                too_much = flow.pause_for_replies(unsent)
                paused(too_much)
                if too_much:
                    break
                flow.on_taken(rng.randrange(100))
                if rng.random() < 0.7:
                    flow.on_charged()
                flow.on_request_waits()
            if rng.random() < 0.5:
                flow.on_partial_frame(now, progress=rng.random() < 0.5)
            else:
                flow.on_no_partial_frame()
            paused(flow.on_chunk_end(crowded=rng.random() < 0.3))
            paused(flow.pause_for_turn())
        match rng.randrange(5):
            case 0 if flow.waiting:
                resumed(flow.on_answered(rng.randrange(100_000), unsent))
            case 1:
                paused(flow.on_stalled(now))
            case 2:
                resumed(flow.on_unstalled())
            case 3:
                resumed(flow.on_room())
            case _:
                resumed(flow.on_flushed())
        assert flow.held == (pauses > 0)
        assert 0 <= pauses <= 3
    while flow.waiting:
        resumed(flow.on_answered(10, 0))
    for release in (flow.on_unstalled, flow.on_room, flow.on_flushed):
        resumed(release())
    assert (pauses, flow.held) == (0, False)
