"""Ids that the caller chooses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import DuplicateEntryError
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.write import LedgerWriter
from bookkeeper.ledger.write.advanced_order import AdvancedOrder
from tests.bookkeeper.ledger.test_metadata import bookies

SPEC = QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1)
(B1,) = bookies("b1")


def order(bytes_max: int = 1000, entries_max: int = 1000) -> AdvancedOrder:
    config = WriterConfig(pending_bytes_max=bytes_max, pending_entries_max=entries_max)
    return AdvancedOrder(LedgerWriter(LedgerMetadata.create(SPEC, (B1,)), config))


@pytest.mark.rule("W2")
def test_ids_go_on_in_order_once_all_lower_ones_are_there() -> None:
    it = order()
    for entry_id in (2, 1):
        it.hold(entry_id, 10)
        assert list(it.take_ready()) == []
    assert (it.held_bytes, it.lowest_missing) == (20, 0)
    it.hold(0, 10)
    assert list(it.take_ready()) == [0, 1, 2]
    assert (it.held_bytes, it.lowest_missing) == (0, 3)


@pytest.mark.rule("W2")
def test_an_id_that_was_given_before_is_refused_wherever_it_is_now() -> None:
    it = order()
    it.hold(0, 1)
    it.take_ready()
    it.hold(5, 1)
    it.wait(7, 1)
    for entry_id in (0, 5, 7):
        with pytest.raises(
            DuplicateEntryError, match=f"entry {entry_id} was appended before, so nothing was sent; .* missing is 1"
        ):
            it.check_new(entry_id)
    with pytest.raises(ValueError, match="-1"):
        it.check_new(-1)
    it.check_new(1)
    assert it.withdraw(7) and not it.withdraw(7)
    it.check_new(7)


@pytest.mark.rule("W12")
def test_a_full_house_never_keeps_out_the_lowest_missing_id() -> None:
    it = order(bytes_max=100)
    it.hold(1, 100)
    assert not it.has_room(2)
    assert it.has_room(0)
    it.hold(0, 60)
    assert list(it.take_ready()) == [0, 1]


@pytest.mark.rule("W12")
def test_the_lowest_missing_id_waits_for_what_the_writer_has_pending() -> None:
    it = order(bytes_max=100)
    first, _ = it._writer.add([100], 0.0)
    it.hold(first, 100)
    it.take_ready()
    assert not it.has_room(1)
    it._writer.on_acks(B1, 0, 1, 0.0)
    assert it.has_room(1)


@pytest.mark.rule("W12")
def test_those_who_wait_come_in_from_the_lowest_id_on() -> None:
    it = order(entries_max=2)
    it.hold(5, 1)
    it.hold(6, 1)
    for entry_id in (9, 1, 0, 4):
        it.wait(entry_id, 1)
    it.withdraw(4)
    assert it.admit() and list(it.take_ready()) == [0]
    assert it.admit() and list(it.take_ready()) == [1]
    assert not it.admit() and it.has_waiters


@given(st.permutations(range(12)), st.integers(1, 40))
@pytest.mark.rule("W2", "W12")
def test_in_whatever_order_all_come_in_and_none_is_stuck(ids: list[int], bytes_max: int) -> None:
    """Everybody waits if need be; the writer confirms at once what it gets."""
    it, given_on = order(bytes_max=bytes_max), list[int]()
    for entry_id in ids:
        it.check_new(entry_id)
        if it.has_room(entry_id):
            it.hold(entry_id, 10)
        else:
            it.wait(entry_id, 10)
        while True:
            for taken in it.take_ready():
                first, _ = it._writer.add([10], 0.0)
                assert first == taken
                it._writer.on_acks(B1, first, 1, 0.0)
                given_on.append(taken)
            assert it.held_bytes <= bytes_max + 10
            if not it.admit():
                break
    assert given_on == list(range(12))


@pytest.mark.rule("W12")
def test_those_who_wait_and_give_up_again_and_again_leave_nothing_behind() -> None:
    it = order(bytes_max=10)
    it.hold(9, 10)
    it.wait(20, 1)
    for turn in range(10_000):
        it.wait(10 + turn % 10, 1)
        assert it.withdraw(10 + turn % 10)
    assert len(it._line) < 200
    it.hold(0, 1)
    assert list(it.take_ready()) == [0]
    it.wait(11, 1)
    assert (it.has_waiters, it.admit()) == (True, False)
