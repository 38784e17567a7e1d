"""What is being filled and what is being synced."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import NOTHING, TxId
from journal_manager.edits import OVERHEAD, encode_batch
from journal_manager.errors import JournalInvariantError
from journal_manager.write.double_buffer import DoubleBuffer


def filled(*sizes: int) -> DoubleBuffer[int]:
    """One group of one edit for each size of a frame; the waiters are their indexes."""
    buffer: DoubleBuffer[int] = DoubleBuffer(TxId(1))
    for index, size in enumerate(sizes):
        buffer.add(encode_batch(buffer.next_txid, [(0, bytes(size - OVERHEAD))]), index)
    return buffer


def test_what_arrives_while_syncing_becomes_the_next_batch() -> None:
    buffer = filled(20, 20)
    first = buffer.take(1000)
    assert first is not None and (first.first, first.last) == (1, 2)
    buffer.add(encode_batch(TxId(3), [(0, b""), (0, b"")]), 2)
    assert buffer.durable_txid == NOTHING
    assert [group.waiter for group in buffer.synced()] == [0, 1]
    assert buffer.durable_txid == 2 and buffer.pending_bytes == 2 * OVERHEAD
    second = buffer.take(1000)
    assert second is not None and (second.first, second.last) == (3, 4)
    buffer.synced()
    assert buffer.idle and buffer.take(1000) is None and buffer.pending_bytes == 0


def test_a_batch_holds_as_many_groups_as_fit_and_at_least_one() -> None:
    buffer = filled(40, 40, 40, 500, 40)
    taken = []
    while (batch := buffer.take(100)) is not None:
        taken.append(batch.count)
        buffer.synced()
    assert taken == [2, 1, 1, 1]


def test_a_batch_holds_no_more_edits_than_allowed_unless_one_group_has_more() -> None:
    buffer: DoubleBuffer[int] = DoubleBuffer(TxId(1))
    for count in (2, 2, 1, 5, 1):
        buffer.add(encode_batch(buffer.next_txid, [(0, b"")] * count), 0)
    taken = []
    while (batch := buffer.take(1000, max_edits=3)) is not None:
        taken.append(batch.count)
        buffer.synced()
    assert taken == [2, 3, 5, 1]


@pytest.mark.rule("C4")
def test_batches_that_are_synced_at_once_end_in_order() -> None:
    buffer: DoubleBuffer[int] = DoubleBuffer(TxId(1), max_syncing=2)
    for index in range(3):
        buffer.add(encode_batch(buffer.next_txid, [(0, b"x")]), index)
    size = OVERHEAD + 1
    buffer.take(size)
    assert (buffer.may_take, buffer.filling_bytes) == (True, 2 * size)
    buffer.take(size)
    assert (buffer.may_take, buffer.filling_bytes, buffer.pending_bytes) == (False, size, 3 * size)
    with pytest.raises(JournalInvariantError, match="C4"):
        buffer.take(size)
    assert [group.waiter for group in buffer.synced()] == [0]
    assert (buffer.durable_txid, buffer.may_take) == (1, True)
    assert [group.waiter for group in buffer.drop()] == [1, 2]
    assert buffer.filling_bytes == 0 and buffer.idle


@pytest.mark.rule("C4")
def test_nothing_is_taken_while_a_batch_is_being_synced() -> None:
    buffer = filled(40, 40)
    buffer.take(40)
    with pytest.raises(JournalInvariantError, match="C4"):
        buffer.take(40)


@pytest.mark.rule("C7")
def test_a_group_that_does_not_join_is_refused() -> None:
    buffer = filled(40)
    for first in (1, 3):
        with pytest.raises(JournalInvariantError, match="C7"):
            buffer.add(encode_batch(TxId(first), [(0, b"")]), 9)


def test_after_a_failure_everyone_is_handed_back_in_order() -> None:
    buffer = filled(40, 40, 40)
    buffer.take(80)
    assert [group.waiter for group in buffer.drop()] == [0, 1, 2]
    assert buffer.idle and buffer.pending_bytes == 0 and buffer.durable_txid == NOTHING


@pytest.mark.rule("C4", "C7")
@given(st.lists(st.one_of(st.integers(20, 90), st.none()), max_size=40))
def test_every_edit_is_taken_once_and_in_order(steps: list[int | None]) -> None:
    buffer: DoubleBuffer[int] = DoubleBuffer(TxId(1))
    durable = 0
    for step in [*steps, *[None] * 100]:
        if step is not None:
            buffer.add(encode_batch(buffer.next_txid, [(0, bytes(step - OVERHEAD))]), buffer.next_txid)
        elif (batch := buffer.take(100)) is not None:
            assert batch.first == durable + 1
            assert [group.waiter for group in buffer.synced()] == list(range(batch.first, batch.last + 1))
            durable = buffer.durable_txid
    assert buffer.idle and durable == buffer.next_txid - 1
