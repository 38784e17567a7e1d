"""Q6: the search over places."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bookkeeper.ids import BookieId
from bookkeeper.ledger.placement import arrangement
from bookkeeper.ledger.placement.arrangement import STEPS_MAX, Windows, arrange
from tests.bookkeeper.ledger.placement.topologies import topology


def test_kept_bookies_stay_where_they_are_and_the_end_meets_the_beginning() -> None:
    where = topology({"/r1": "a b", "/r2": "c d"})
    a, b, c, d = (BookieId(name) for name in "abcd")
    assert arrange([a, None, None, None], [b, c, d], where, Windows(2, 2, 1)) == (a, c, b, d)
    assert arrange([a, None, None], [b, c, d], where, Windows(2, 2, 1)) is None, "three in a ring of two racks"


def test_a_search_without_a_result_ends() -> None:
    racks = {f"/r{number}": f"x{number} y{number}" for number in range(12)}
    where = topology(racks)
    slots: list[BookieId | None] = [None] * 24
    assert arrange(slots, sorted(where), where, Windows(13, 13, 1)) is None
    assert STEPS_MAX <= 100_000


def not_to_be_asked(*given: object) -> None:
    raise AssertionError(f"a search for {given}")


def test_of_bookies_in_one_place_the_first_are_chosen_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    where = topology({"/r1": "d c b a"})
    some = [BookieId(name) for name in "dcba"]
    search: Callable[..., object] = arrangement._Search
    searched = search([None] * 3, some, where, Windows(2, 1, 1))
    assert searched.run(0) and searched.chosen == some[:3]  # type: ignore[attr-defined]
    monkeypatch.setattr(arrangement, "_Search", not_to_be_asked)
    assert arrange([None] * 3, some, where, Windows(2, 1, 1)) == tuple(some[:3])


@pytest.mark.parametrize("wanted", [Windows(2, 2, 1), Windows(2, 1, 2)], ids=["racks", "regions"])
def test_one_place_is_not_enough_where_more_are_wanted(wanted: Windows) -> None:
    where = topology({"/r1": "a b c"})
    assert arrange([None] * 3, sorted(where), where, wanted) is None


def test_too_few_bookies_of_one_place_are_no_ensemble() -> None:
    where = topology({"/r1": "a b"})
    assert arrange([None] * 3, sorted(where), where, Windows(2, 1, 1)) is None
