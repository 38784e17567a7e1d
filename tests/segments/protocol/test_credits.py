from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.protocol.credits import CREDITS_MAX, CreditBalance, SendWindow


def test_nothing_is_sent_without_credits_of_both_kinds() -> None:
    """SEG-121: a tail honours flow control."""
    balance = CreditBalance()
    allowed = [balance.may_send]
    for records, size in ((10, 0), (0, 100)):
        balance.grant(records, size)
        allowed.append(balance.may_send)
    assert allowed == [False, False, True]
    balance.spend(2, 2)
    assert (balance.records, balance.bytes) == (8, 98)


def test_a_record_larger_than_the_credits_passes_and_is_owed() -> None:
    balance = CreditBalance()
    balance.grant(5, 10)
    balance.spend(1, 1000)
    allowed = [balance.may_send]
    for size in (990, 1):
        balance.grant(0, size)
        allowed.append(balance.may_send)
    assert allowed == [False, False, True]


def test_credits_are_never_taken_back_and_have_an_end() -> None:
    balance = CreditBalance()
    with pytest.raises(ValueError, match="never taken back"):
        balance.grant(-1, 0)
    with pytest.raises(ValueError, match="never taken back"):
        balance.grant(0, -1)
    for _ in range(3):
        balance.grant(CREDITS_MAX, CREDITS_MAX)
    assert (balance.records, balance.bytes) == (CREDITS_MAX, CREDITS_MAX)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), min_size=1))
def test_who_gives_back_what_was_sent_has_given_no_more_than_at_first(sent: list[tuple[int, int]]) -> None:
    """SEG-121: what was sent beyond the credits counts, too; otherwise a reader would be sent more and more."""
    balance = CreditBalance(5, 10)
    for records, size in sent:
        balance.spend(records, size)
    balance.grant(sum(records for records, _ in sent), sum(size for _, size in sent))
    assert balance == CreditBalance(5, 10)


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
