"""How far may one read?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import BookieUnavailableError, InvariantError, UnauthorizedError
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.read import last_add_confirmed
from bookkeeper.ledger.read.last_add_confirmed import Poll
from tests.bookkeeper.ledger.test_metadata import CLOSED, IN_RECOVERY, OPEN, SPEC, bookies
from tests.bookkeeper.validated import validated

KnownLac = validated(last_add_confirmed.KnownLac)
LacByCoverage = validated(last_add_confirmed.LacByCoverage)
LongPoll = validated(last_add_confirmed.LongPoll)

B1, B2, B3 = ENSEMBLE = bookies("b1 b2 b3")
LOST = BookieUnavailableError("gone")


@pytest.mark.rule("L3")
@given(st.lists(st.integers(-1, 3)))
def test_it_never_falls_and_ends_at_the_last_id(heard: list[int]) -> None:
    known = KnownLac(OPEN)
    for n, lac in enumerate(heard):
        news = known.on_proven(lac)
        assert known.value == max([-1, *heard[: n + 1]])
        assert news == (lac > max([-1, *heard[:n]]))
    assert known.on_metadata(CLOSED)
    assert not known.on_proven(99)
    assert known.value == known.closed_at == 4
    assert not known.on_metadata(CLOSED)


@pytest.mark.rule("L3")
def test_a_ledger_that_ends_below_what_was_read_is_an_alarm() -> None:
    known = KnownLac(OPEN)
    known.on_proven(5)
    with pytest.raises(InvariantError, match="L3"):
        known.on_metadata(CLOSED)


@pytest.mark.rule("L3")
def test_hearsay_counts_until_what_it_tells_of_is_provably_not_there() -> None:
    known = KnownLac(OPEN)
    assert known.on_proven(1) and known.on_hearsay(7) and not known.on_hearsay(7)
    assert not known.on_proven(1) and not known.on_proven(3), "no news: 7 are known"
    assert not known.on_absent(3), "that one is proven"
    assert known.on_absent(4)
    assert known.value == known.proven == 3
    assert known.on_absent(5), "whoever read it at the same time is told the same"
    assert known.on_hearsay(9)
    assert known.on_metadata(CLOSED), "the end is what the metadata say, whatever was said"
    assert known.value == known.closed_at == 4
    assert not known.on_hearsay(9) and not known.on_absent(4)


@pytest.mark.rule("L3")
def test_a_fragment_tells_what_was_confirmed_when_it_began() -> None:
    assert KnownLac(OPEN.change_ensemble(7, bookies("b1 b2 b4"))).value == 6
    assert KnownLac(IN_RECOVERY).value == -1
    assert repr(KnownLac(CLOSED)) == "KnownLac(4, closed)"


@pytest.mark.rule("Q3", "L3")
def test_an_answer_needs_coverage() -> None:
    ask = LacByCoverage(SPEC, ENSEMBLE)
    ask.on_answer(B1, Answer.POSITIVE, 5)
    assert (ask.is_covered, ask.error) == (False, None)
    ask.on_answer(B2, Answer.UNKNOWN, None, LOST)
    assert not ask.is_covered
    ask.on_answer(B3, Answer.NEGATIVE, None)
    assert (ask.is_covered, ask.value, ask.error) == (True, 5, None)


@pytest.mark.rule("Q2")
def test_too_many_unknown_are_an_error_and_strangers_do_not_count() -> None:
    ask = LacByCoverage(SPEC, ENSEMBLE)
    ask.on_answer(bookies("b9")[0], Answer.POSITIVE, 99)
    ask.on_answer(B1, Answer.POSITIVE, 5)
    ask.on_answer(B2, Answer.UNKNOWN, None, LOST)
    ask.on_answer(B3, Answer.UNKNOWN, None, LOST)
    assert (ask.is_covered, ask.error) == (False, LOST)


@pytest.mark.rule("Q2", "Q3")
def test_one_bookie_that_refuses_everybody_keeps_nobody_from_the_answer_and_two_are_told_at_once() -> None:
    ask = LacByCoverage(SPEC, ENSEMBLE)
    ask.on_answer(B1, Answer.UNKNOWN, None, UnauthorizedError())
    assert (ask.is_covered, ask.error) == (False, None)
    ask.on_answer(B2, Answer.POSITIVE, 5)
    ask.on_answer(B3, Answer.POSITIVE, 4)
    assert (ask.is_covered, ask.value, ask.error) == (True, 5, None)
    refused = LacByCoverage(SPEC, ENSEMBLE)
    refused.on_answer(B1, Answer.UNKNOWN, None, LOST)
    refused.on_answer(B2, Answer.UNKNOWN, None, UnauthorizedError())
    assert refused.error is None
    refused.on_answer(B3, Answer.UNKNOWN, None, UnauthorizedError())
    assert isinstance(refused.error, UnauthorizedError)


@pytest.mark.rule("L9")
def test_a_round_of_polls_names_what_is_known_and_ends_in_time() -> None:
    known, poll = KnownLac(OPEN), LongPoll(ENSEMBLE, timeout_ms=2_500)
    assert poll.next(known, 0) == Poll(B1, known.value, 1_000)
    known.on_proven(3)
    assert poll.next(known, 1_000) == Poll(B2, known.value, 1_000)
    assert poll.next(known, 2_000) == Poll(B3, known.value, 500)
    assert poll.next(known, 2_500) is None
    known.on_metadata(CLOSED)
    assert LongPoll(ENSEMBLE, timeout_ms=2_500).next(known, 0) is None
