"""A bookie that fails again soon after it came back is tried later each time."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.client.write import retry_pauses
from bookkeeper.client.write.retry_pauses import RELAPSE_S
from bookkeeper.ids import BookieId
from tests.bookkeeper.validated import validated

RetryPauses = validated(retry_pauses.RetryPauses)

B1, B2 = BookieId("b1"), BookieId("b2")


def test_the_first_failure_begins_with_the_shortest_pause() -> None:
    pauses = RetryPauses(lambda: iter(count(1)))
    assert next(pauses.on_failed(B1, 5.0)) == 1
    assert next(pauses.on_failed(B2, 5.0)) == 1


def test_a_relapse_goes_on_where_the_last_absence_stopped() -> None:
    pauses = RetryPauses(lambda: iter(count(1)))
    first = pauses.on_failed(B1, 0.0)
    assert [next(first), next(first)] == [1, 2]
    pauses.on_returned(B1, 100.0)
    assert next(pauses.on_failed(B1, 100.0 + RELAPSE_S)) == 3
    pauses.on_returned(B1, 200.0)
    assert next(pauses.on_failed(B1, 200.1 + RELAPSE_S)) == 1


def test_a_bookie_that_fails_while_it_is_away_begins_anew() -> None:
    pauses = RetryPauses(lambda: iter(count(1)))
    assert next(pauses.on_failed(B1, 0.0)) == 1
    assert next(pauses.on_failed(B1, 1.0)) == 1, "it has not come back since: this is another watch for it"


@given(st.lists(st.tuples(st.sampled_from([B1, B2]), st.booleans(), st.floats(0, 100))))
def test_no_bookie_waits_for_another(events: list[tuple[BookieId, bool, float]]) -> None:
    pauses = RetryPauses(lambda: iter(count(1)))
    away: set[BookieId] = set()
    now = 0.0
    for bookie, returns, passed in events:
        now += passed
        if not returns:
            next(pauses.on_failed(bookie, now))
            away.add(bookie)
        elif bookie in away:
            away.remove(bookie)
            pauses.on_returned(bookie, now)
