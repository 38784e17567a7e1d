"""Q6: the search over places."""

from __future__ import annotations

from bookkeeper.ids import BookieId
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
