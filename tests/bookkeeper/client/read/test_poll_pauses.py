"""A reader does not ask a bookie a thousand times a second, and is not slow when there is news."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.client.read.poll_pauses import EARLY, FAILED_S, PollPauses
from tests.bookkeeper.validated import validated

Pauses = validated(PollPauses)


def test_polls_that_end_early_without_news_are_followed_by_growing_pauses() -> None:
    pauses = Pauses(Random(1))
    waits = [pauses.on_answered(took_s=0.001, timeout_s=1.0, news=False) for _ in range(8)]
    for n, wait in enumerate(waits):
        most = min(FAILED_S * 2**n, EARLY.max_s)
        assert most / 2 <= wait <= most


def test_news_and_a_poll_that_waited_end_the_pauses() -> None:
    pauses = Pauses(Random(1))
    for news, took_s in ((True, 0.001), (False, 0.5)):
        for _ in range(5):
            pauses.on_answered(took_s=0.001, timeout_s=1.0, news=False)
        assert pauses.on_answered(took_s=took_s, timeout_s=1.0, news=news) == 0.0
        assert pauses.on_answered(took_s=0.001, timeout_s=1.0, news=False) <= FAILED_S


def test_a_failed_poll_is_followed_by_a_short_pause_and_changes_nothing_else() -> None:
    pauses = Pauses(Random(1))
    for _ in range(4):
        pauses.on_answered(took_s=0.001, timeout_s=1.0, news=False)
    assert pauses.on_failed() == FAILED_S
    assert pauses.early == 4


@given(st.lists(st.one_of(st.none(), st.tuples(st.floats(0, 2), st.booleans()))))
def test_a_poll_is_never_followed_by_another_at_once_unless_it_brought_news_or_waited(
    polls: list[tuple[float, bool] | None],
) -> None:
    pauses = Pauses(Random(1))
    for poll in polls:
        if poll is None:
            assert pauses.on_failed() > 0
            continue
        took_s, news = poll
        wait = pauses.on_answered(took_s=took_s, timeout_s=1.0, news=news)
        assert (wait == 0) == (news or took_s >= 0.5)
        assert wait <= EARLY.max_s
