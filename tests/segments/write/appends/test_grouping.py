"""Which appends share an entry, and when it is sent."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from segments.record import Record
from segments.write.appends.grouping import (
    GATHER_UNDER_WAY,
    LONE_APPENDS,
    Group,
    Grouping,
    Linger,
    ProducerRun,
    Promise,
    Send,
    split,
)


def future() -> asyncio.Future[Any]:
    return object()  # type: ignore[return-value]


def test_single_appends_have_a_future_each_and_nothing_else() -> None:
    group = Group(100)
    each = [future() for _ in range(3)]
    for one in each:
        group.items.append(b"v")
        group.promise(one, 1)
    assert group.futures == each
    assert group.promises is None


def test_a_batch_among_single_appends_has_one_future_for_its_slots() -> None:
    group = Group(100)
    a, b, c = future(), future(), future()
    group.items.append(b"0")
    group.promise(a, 1)
    group.items += [b"1", b"2", b"3"]
    group.promise(b, 3)
    group.items.append(b"4")
    group.promise(c, 1)
    assert group.promises == [Promise(a, 0, 1), Promise(b, 1, 3), Promise(c, 4, 1)]


def test_consecutive_records_of_a_producer_are_one_run_and_others_begin_a_new_one() -> None:
    group = Group(100)
    for producer, epoch, sequence in [("p", 1, 5), ("p", 1, 6), ("q", 1, 0), ("p", 1, 7), ("p", 2, 8), ("p", 2, 10)]:
        group.items.append(b"v")
        group.of_producer(producer, epoch, sequence, 1)
    assert group.runs == [
        ProducerRun("p", 1, 5, 0, 2),
        ProducerRun("q", 1, 0, 2, 1),
        ProducerRun("p", 1, 7, 3, 1),
        ProducerRun("p", 2, 8, 4, 1),
        ProducerRun("p", 2, 10, 5, 1),
    ]
    group.items.append(b"nobody's")
    group.items.append(b"v")
    group.of_producer("p", 2, 11, 1)
    assert group.runs[-1] == ProducerRun("p", 2, 11, 7, 1), "another record stands between"


def test_values_and_records_mix() -> None:
    group = Group(10)
    group.items += [b"value", Record(b"record", txid=3)]
    assert group.records() == [Record(b"value"), Record(b"record", txid=3)]
    group.room -= 4
    assert group.bytes == 4


def test_a_group_is_sent_at_the_turn_while_little_is_under_way_and_gathers_while_much_is() -> None:
    grouping = Grouping()
    assert grouping.send_time(0) is Send.AT_THE_TURN
    assert grouping.send_time(GATHER_UNDER_WAY - 1) is Send.AT_THE_TURN
    assert grouping.send_time(GATHER_UNDER_WAY) is Send.ON_PROGRESS
    assert Grouping(linger_s=0.005).send_time(0) == Linger(0.005)


def test_a_caller_that_waits_for_each_append_gets_its_entry_sent_at_once() -> None:
    for linger in (0.0, 0.005):
        grouping = Grouping(linger)
        for _ in range(LONE_APPENDS):
            assert grouping.send_time(0) is not Send.NOW
            grouping.on_cut(1, 0)
        assert grouping.send_time(0) is Send.NOW
        assert grouping.send_time(1) is not Send.NOW
        grouping.on_cut(2, 0)
        assert grouping.send_time(0) is not Send.NOW


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 60))
def test_split_keeps_order_and_loses_nothing(sizes: list[int], limit: int) -> None:
    runs = split(sizes, limit)
    assert [index for start, end in runs for index in range(start, end)] == list(range(len(sizes)))
    for start, end in runs:
        assert end - start == 1 or sum(sizes[start:end]) <= limit
    for (start, end), (_, after) in pairwise(runs):
        assert after > end
        assert sum(sizes[start:end]) + sizes[end] > limit, "the next one would not have fitted"
