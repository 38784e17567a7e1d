from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.rpc.credits import CREDITS_MAX, CreditBalance, SendWindow


def test_nothing_is_sent_without_credits_of_both_kinds() -> None:
    """SEG-121: a tail honours flow control."""
    balance = CreditBalance()
    assert balance.take([1]) == 0
    balance.grant(10, 0)
    assert balance.take([1]) == 0
    balance.grant(0, 100)
    assert balance.take([1, 1]) == 2
    assert (balance.records, balance.bytes) == (8, 98)


def test_a_record_larger_than_the_credits_passes_and_is_owed() -> None:
    balance = CreditBalance()
    balance.grant(5, 10)
    assert balance.take([1000, 1]) == 1
    assert not balance.may_send
    balance.grant(0, 990)
    assert not balance.may_send
    balance.grant(0, 1)
    assert balance.take([7, 7]) == 1


def test_credits_are_never_taken_back_and_have_an_end() -> None:
    balance = CreditBalance()
    with pytest.raises(ValueError, match="never taken back"):
        balance.grant(-1, 0)
    with pytest.raises(ValueError, match="never taken back"):
        balance.grant(0, -1)
    for _ in range(3):
        balance.grant(CREDITS_MAX, CREDITS_MAX)
    assert (balance.records, balance.bytes) == (CREDITS_MAX, CREDITS_MAX)


@given(st.lists(st.one_of(st.tuples(st.integers(0, 5), st.integers(0, 50)), st.lists(st.integers(0, 40)))))
def test_a_reader_gets_at_most_one_record_beyond_its_bytes(steps: list[tuple[int, int] | list[int]]) -> None:
    """SEG-121: whatever is given and offered, records stay within credits, and bytes exceed them by one record."""
    balance = CreditBalance()
    records = size = sent = sent_bytes = last = 0
    for step in steps:
        if isinstance(step, tuple):
            balance.grant(*step)
            records, size = records + step[0], size + step[1]
        else:
            count = balance.take(step)
            for each in step[:count]:
                assert sent < records
                assert sent_bytes < size
                sent, sent_bytes, last = sent + 1, sent_bytes + each, each
        assert sent <= records
        assert sent_bytes <= size + last


def test_a_writer_waits_until_its_window_has_room() -> None:
    window = SendWindow(3, 100)
    assert window.has_room(50, 5000)  # nothing is unanswered: a large batch passes alone
    window.sent(2, 50)
    assert window.has_room(1, 50)
    assert not window.has_room(2, 10)
    assert not window.has_room(1, 51)
    window.answered(2, 50)
    window.resize(0, 0)
    window.sent(1, 1)
    assert not window.has_room(1, 0)
