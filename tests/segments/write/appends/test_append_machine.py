"""Which appends are in which group, and what has room, whatever comes in whatever order."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.config import FlushPolicy, StreamConfig, StreamLimits
from segments.entries.columns import RecordColumns
from segments.errors import RecordTooLargeError, TxidOrderError
from segments.record import Record
from segments.write.appends.append_machine import GROUP_MAX, AppendMachine
from segments.write.appends.grouping import RECORD_COST, Group, ProducerRun

CONFIG = StreamConfig(
    txid="application",
    limits=StreamLimits(pending_bytes=4000, record_bytes=900),
    flush=FlushPolicy(max_bytes=1000, max_records=10),
)


def waiters(group: Group) -> list[Any]:
    return group.futures if group.promises is None else [promise.future for promise in group.promises]


def add(machine: AppendMachine, value: bytes, waiter: Any) -> None:
    """What a writer does with an easy value."""
    machine.group.items.append(value)
    machine.group.promise(waiter, 1)
    machine.group.room -= len(value) + RECORD_COST


_calls = st.lists(
    st.one_of(
        st.tuples(st.just("value"), st.integers(0, 1000)),
        st.tuples(st.just("record"), st.integers(0, 1000)),
        st.tuples(st.just("batch"), st.integers(0, 15)),
        st.tuples(st.just("columns"), st.integers(0, 15)),
        st.tuples(st.just("epoch"), st.just(0)),
        st.tuples(st.sampled_from(["cut", "settle", "refuse", "admit"]), st.just(0)),
    ),
    max_size=60,
)


def _take(machine: AppendMachine, what: str, size: int, waiter: int) -> list[Group] | None:
    """What one append cuts; None: it was not taken."""
    try:
        if what == "value":
            if size > machine.fast_path_max:
                return None
            add(machine, bytes(size), waiter)
            return machine.cut() if machine.is_group_full else []
        if what == "record":
            return machine.take_one(Record(bytes(size), key=b"k"), None, waiter, ("p", 1, waiter))
        if what == "batch":
            return machine.take_batch([bytes(10)] * size, waiter)
        if what == "columns":
            return machine.take_columns(RecordColumns.of_values([bytes(10)] * size), waiter)
        return machine.take_epoch(ProducerRun("p", 2, 0, 0, 0), waiter)
    except (RecordTooLargeError, ValueError):
        return None


@given(_calls)
def test_each_append_is_in_one_group_in_order_and_the_bytes_are_counted(calls: list[tuple[str, int]]) -> None:
    machine = AppendMachine("s", CONFIG, None)
    taken: list[int] = []
    sent: list[Group] = []
    under_way: deque[Group] = deque()
    for waiter, (what, size) in enumerate(calls):
        cut: list[Group] | None = []
        if what == "cut":
            cut = machine.cut()
        elif what == "settle" and under_way:
            machine.on_settled(under_way.popleft())
        elif what in ("refuse", "admit"):
            getattr(machine, what)()
        elif what != "settle":
            cut = _take(machine, what, size, waiter)
            taken += [waiter] if cut is not None else []
        sent += cut or []
        under_way.extend(cut or [])
        machine.validate_state()
        assert machine.pending_bytes == sum(group.bytes for group in under_way) + machine.group.bytes
        assert machine.pending == len(under_way) + bool(machine.group.items)
        assert not (machine.is_full and cut and machine.fast_path_max >= 0)
    assert [each for group in (*sent, machine.group) for each in waiters(group)] == taken


def test_a_group_is_cut_when_it_is_full_and_before_it_is_larger_than_an_entry() -> None:
    large = StreamConfig(limits=StreamLimits(record_bytes=GROUP_MAX), flush=FlushPolicy(max_bytes=GROUP_MAX))
    machine = AppendMachine("s", large, None)
    add(machine, b"small", "a")
    first, second = machine.take_one(bytes(GROUP_MAX - 8), None, "b")
    assert (waiters(first), waiters(second), waiters(machine.group)) == (["a"], ["b"], [])
    machine = AppendMachine("s", CONFIG, None)
    for slot in range(10):
        assert not machine.is_group_full
        add(machine, b"", slot)
    assert machine.is_group_full


def test_what_is_refused_changes_nothing() -> None:
    machine = AppendMachine("s", CONFIG, 7)
    with pytest.raises(TxidOrderError):
        machine.take_one(b"", 6, "late")
    with pytest.raises(RecordTooLargeError):
        machine.take_one(bytes(901), 9, "large")
    with pytest.raises(TxidOrderError):
        machine.take_batch([Record(b"", txid=9), Record(b"", txid=8)], "falling")
    assert (machine.last_txid, machine.pending, waiters(machine.group)) == (7, 0, [])
    assert machine.take_one(b"", 7, "same") == [] and machine.take_one(b"", 8, "next") == []
    assert machine.last_txid == 8


def test_a_full_machine_takes_nothing_easy_until_it_is_told_to() -> None:
    machine = AppendMachine("s", CONFIG, None)
    sent = [group for slot in range(4) for group in machine.take_batch([bytes(880)], slot) + machine.cut()]
    sent += machine.take_batch([bytes(900)], 4) + machine.cut()
    assert machine.is_full and machine.fast_path_max < 0 and "limits.pending_bytes" in str(machine.overloaded())
    machine.on_settled(sent[0])
    assert (machine.is_full, machine.fast_path_max) == (False, -1)
    assert (machine.settled_count, machine.pending, machine.pending_bytes) == (
        1,
        len(sent) - 1,
        sum(g.bytes for g in sent[1:]),
    )
    machine.admit()
    assert (machine.is_full, machine.fast_path_max) == (False, 900)


def test_a_large_batch_is_cut_where_its_records_with_their_cost_exceed_an_entry() -> None:
    machine = AppendMachine("s", CONFIG, None)
    half = bytes(GROUP_MAX // 2 - RECORD_COST)
    assert machine.parts([half, half]) == [(0, 2)]
    assert machine.parts([half, half + b"x"]) == [(0, 1), (1, 2)]
    with pytest.raises(ValueError, match="at least one record"):
        machine.parts([])
    with pytest.raises(ValueError, match="at least one record"):
        machine.take_columns(RecordColumns.of_values([]), "w")


def test_transaction_ids_stand_beside_the_values_that_have_one() -> None:
    machine = AppendMachine("s", CONFIG, None)
    add(machine, b"without", "a")
    assert machine.take_one(b"with", 5, "b") == []
    assert machine.group.txids == [None, 5]
