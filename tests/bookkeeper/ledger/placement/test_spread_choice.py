"""Q6: copies stand in as many racks as there are, compared with an exhaustive search."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bookkeeper.errors import NotEnoughBookiesError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.location import Location
from bookkeeper.ledger.placement import PlacementPolicy, SpreadChoice, WhenShort
from bookkeeper.ledger.placement.candidates import Candidates
from bookkeeper.ledger.quorum import QuorumSpec
from tests.bookkeeper.ledger.placement.topologies import most_racks, racks_in_worst_window, topology, without


def _spec(ensemble: int, write: int) -> QuorumSpec:
    return QuorumSpec(ensemble_size=ensemble, write_quorum=write, ack_quorum=(write + 2) // 2)


def _bookies(names: str) -> tuple[BookieId, ...]:
    return tuple(map(BookieId, names.split()))


class _Places:
    def __init__(self, where: Mapping[BookieId, Location]) -> None:
        self.version, self.where, self.asked = 0, dict(where), 0

    def of(self, bookie: BookieId) -> Location:
        self.asked += 1
        return self.where[bookie]


def _policy(where: Mapping[BookieId, Location], **options: bool) -> SpreadChoice:
    return SpreadChoice(_Places(where), racks_min=2, **options)


@st.composite
def _topologies(draw: st.DrawFn) -> dict[BookieId, Location]:
    count = draw(st.integers(2, 6))
    places = st.sampled_from(["/a/1", "/a/2", "/b/1", "/b/2", "/c"])
    return {BookieId(f"b{at}"): Location.parse(draw(places)) for at in range(count)}


@pytest.mark.rule("Q6")
@given(_topologies(), st.integers(2, 5), st.integers(2, 3), st.randoms(use_true_random=False))
def test_a_new_ensemble_has_as_many_racks_as_an_exhaustive_search_finds(
    where: dict[BookieId, Location], size: int, write: int, chance: random.Random
) -> None:
    assume(write <= size <= len(where))
    candidates = sorted(where)
    chance.shuffle(candidates)
    spec = _spec(size, write)
    chosen = _policy(where).new_ensemble(spec, candidates)
    assert len(set(chosen)) == size
    assert racks_in_worst_window(spec, chosen, where)[1] == most_racks(spec, where, {})


@pytest.mark.rule("Q6")
@given(_topologies(), st.integers(2, 4), st.integers(2, 3), st.data())
def test_stand_ins_keep_as_many_racks_as_an_exhaustive_search_finds(
    where: dict[BookieId, Location], size: int, write: int, data: st.DataObject
) -> None:
    assume(write <= size < len(where))
    ensemble = tuple(data.draw(st.permutations(sorted(where)))[:size])
    failed = frozenset(data.draw(st.lists(st.sampled_from(ensemble), min_size=1, max_size=2, unique=True)))
    spares = [bookie for bookie in where if bookie not in ensemble]
    assume(len(spares) >= len(failed))
    spec = _spec(size, write)
    stand_ins = _policy(where).replace(spec, ensemble, failed, spares)
    assert set(stand_ins) == failed
    assert set(stand_ins.values()) <= set(spares)
    assert len(set(stand_ins.values())) == len(failed)
    after = [stand_ins.get(bookie, bookie) for bookie in ensemble]
    kept = {at: bookie for at, bookie in enumerate(ensemble) if bookie not in failed}
    assert racks_in_worst_window(spec, after, where)[1] == most_racks(spec, without(where, failed), kept)


@pytest.mark.parametrize("write", [2, 3])
def test_an_enforced_choice_is_found_whenever_there_is_one_whatever_the_order(write: int) -> None:
    where = topology({"/r1": "a b", "/r2": "c", "/r3": "d"})
    spec, policy = _spec(write, write), _policy(where, enforced=True)
    for seed in range(300):
        candidates = sorted(without(where, {"c"}))
        random.Random(seed).shuffle(candidates)
        assert racks_in_worst_window(spec, policy.new_ensemble(spec, candidates), where)[1] == 2


def test_what_is_enforced_and_cannot_be_had_is_an_error_that_names_the_racks() -> None:
    where = topology({"/r1": "a b c"})
    policy = _policy(where, enforced=True)
    with pytest.raises(NotEnoughBookiesError, match=r"in at least 2 racks.*/r1 has a, b, c\. Start bookies in another"):
        policy.new_ensemble(_spec(3, 2), sorted(where))
    assert _policy(where).new_ensemble(_spec(3, 2), sorted(where)) == ("a", "b", "c")


def test_an_enforced_stand_in_that_would_put_all_copies_into_one_rack_is_none() -> None:
    where = topology({"/r1": "a b", "/r2": "c"})
    spec, (a, b, c) = _spec(2, 2), _bookies("a b c")
    assert _policy(where, enforced=True).replace(spec, (a, c), {c}, [b]) == {}
    assert _policy(where).replace(spec, (a, c), {c}, [b]) == {c: b}


def test_neighbours_stand_apart_and_not_only_the_ensemble() -> None:
    where = topology({"/r1": "a b c", "/r2": "d e f"})
    spec = _spec(6, 2)
    chosen = _policy(where).new_ensemble(spec, sorted(where))
    assert racks_in_worst_window(spec, chosen, where)[1] == 2


def test_regions_come_before_racks() -> None:
    where = topology({"/a/1": "b1", "/a/2": "b2", "/a/3": "b3", "/b/1": "b4 b5"})
    spec = _spec(3, 3)
    chosen = _policy(where, by_region=True).new_ensemble(spec, sorted(where))
    assert racks_in_worst_window(spec, chosen, where) == (2, 3)
    only_racks = topology({"/a/1": "b1", "/a/2": "b2", "/b/1": "b3 b4"})
    spec = _spec(4, 2)
    chosen = _policy(only_racks, by_region=True).new_ensemble(spec, sorted(only_racks))
    assert racks_in_worst_window(spec, chosen, only_racks) == (2, 2)


def test_a_bookie_in_quarantine_is_taken_only_for_a_rack_that_lacks() -> None:
    where = topology({"/r1": "a b", "/r2": "c d"})
    spec = _spec(2, 2)
    a, b, c, d = _bookies("a b c d")
    assert set(_policy(where).new_ensemble(spec, sorted(where), avoided={a, c})) == {b, d}
    assert set(_policy(where).new_ensemble(spec, sorted(where), avoided={c, d})) & {c, d}
    three = topology({"/r1": "a b", "/r2": "c", "/r3": "d"})
    assert set(_policy(three).new_ensemble(_spec(3, 3), sorted(three), avoided={d})) == {a, b, c}


def test_the_first_candidates_of_a_rack_are_taken_first() -> None:
    where = topology({"/r1": "a b", "/r2": "c d"})
    candidates = [BookieId(name) for name in ("d", "b", "a", "c")]
    assert _policy(where).new_ensemble(_spec(2, 2), candidates) == ("d", "b")


def test_too_few_bookies_are_told_as_without_racks() -> None:
    where = topology({"/r1": "a b"})
    policy: PlacementPolicy = _policy(where)
    with pytest.raises(NotEnoughBookiesError, match="needs 3 bookies, but 2 can be used: a, b"):
        policy.new_ensemble(_spec(3, 3), sorted(where))
    absent = topology({"/r2": "x"})
    found = _policy(where | absent).new_ensemble(
        _spec(3, 3), sorted(where), known_absent=[BookieId("x")], when_short=WhenShort.NAME_ABSENT
    )
    assert set(found) == {"a", "b", "x"}


def test_what_lacks_is_said_in_words() -> None:
    where = topology({"/r1": "a b", "/r2": "c"})
    policy = _policy(where)
    assert policy.shortfall(_spec(2, 2), (BookieId("a"), BookieId("c"))) is None
    assert policy.shortfall(_spec(2, 2), (BookieId("a"), BookieId("b"))) == (
        "all copies of some entries (a, b) stand in rack /r1, and 2 racks are wanted"
    )


def test_of_five_hundred_bookies_a_few_are_looked_at_also_where_full_spread_cannot_be_had() -> None:
    where = {BookieId(f"b{at}"): Location.parse(f"/region{at % 2}/rack{at % 20}") for at in range(500)}
    places, chance, spec = _Places(where), random.Random(5), _spec(3, 3)
    policy = SpreadChoice(places, racks_min=2, by_region=True)
    pool = tuple(sorted(where))
    policy.new_ensemble(spec, Candidates(pool, (), chance))
    for _ in range(20):
        places.asked = 0
        found = policy.new_ensemble(spec, Candidates(pool, (), chance))
        assert racks_in_worst_window(spec, found, where) == (2, 3)
        assert places.asked < 50


def test_what_was_the_best_is_forgotten_with_a_change_of_bookies_or_of_places() -> None:
    where = topology({"/r1": "a b c", "/r2": "d"})
    places, chance, spec = _Places(where), random.Random(5), _spec(3, 3)
    policy = SpreadChoice(places, racks_min=2)
    pool = tuple(sorted(where))
    assert racks_in_worst_window(spec, policy.new_ensemble(spec, Candidates(pool, (), chance)), where)[1] == 2
    places.where[BookieId("c")] = Location.parse("/r3")
    places.version += 1
    for _ in range(10):
        assert set(policy.new_ensemble(spec, Candidates(pool, (), chance))) >= {"c", "d"}
    places.where[BookieId("e")] = Location.parse("/r4")
    wider = (*pool, BookieId("e"))
    found = policy.new_ensemble(spec, Candidates(wider, (), chance), excluded=[BookieId("d")])
    assert set(found) >= {"c", "e"}


@pytest.mark.rule("Q6")
@given(_topologies(), st.integers(2, 4), st.integers(2, 3), st.randoms(use_true_random=False))
def test_by_region_the_most_regions_come_first_and_then_the_most_racks(
    where: dict[BookieId, Location], size: int, write: int, chance: random.Random
) -> None:
    assume(write <= size <= len(where))
    candidates = sorted(where)
    chance.shuffle(candidates)
    spec = _spec(size, write)
    chosen = _policy(where, by_region=True).new_ensemble(spec, candidates)
    best = max(racks_in_worst_window(spec, each, where) for each in permutations(sorted(where), size))
    assert racks_in_worst_window(spec, chosen, where) == best


@pytest.mark.rule("Q6")
def test_a_copy_is_moved_only_where_that_brings_another_rack() -> None:
    where = topology({"/r1": "a b c", "/r2": "d"})
    a, b, c, d = _bookies("a b c d")
    policy, spec = _policy(where), _spec(2, 2)
    assert policy.move(spec, (a, b), [c]) is None, "no exchange helps"
    assert policy.move(spec, (a, d), [c]) is None, "nothing lacks"
    assert policy.move(spec, (a, b), [c, d]) in {(a, d), (b, d)}
    assert policy.move(spec, (a, b), []) is None


@pytest.mark.rule("Q6")
def test_racks_that_came_are_used_at_once() -> None:
    """What the cluster could have before is remembered no more."""
    pool = tuple(BookieId(f"b{at:02}") for at in range(40))
    places = _Places(dict.fromkeys(pool, Location.parse("/x/1")))
    policy, spec, chance = SpreadChoice(places, racks_min=2), _spec(3, 3), random.Random(1)
    policy.new_ensemble(spec, Candidates(pool, (), chance))
    places.where |= {bookie: Location.parse(f"/x/{bookie}") for bookie in pool[:2]}
    places.version += 1
    for _ in range(20):
        found = policy.new_ensemble(spec, Candidates(pool, (), chance))
        assert racks_in_worst_window(spec, found, places.where)[1] == 3
