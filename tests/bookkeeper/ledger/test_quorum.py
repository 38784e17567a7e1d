"""Quorum arithmetic against its definitions, for every shape up to seven bookies, and against captured answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.ids import BookieId
from bookkeeper.ledger.quorum import QuorumSpec
from tests.bookkeeper.ledger.vectors import load

BOOKIES = [BookieId(f"b{n}") for n in range(7)]


def shapes(size_max: int = 7) -> Iterator[QuorumSpec]:
    for e in range(1, size_max + 1):
        for w in range(1, e + 1):
            for a in range(1, w + 1):
                yield QuorumSpec(ensemble_size=e, write_quorum=w, ack_quorum=a)


def subsets(items: Sequence[BookieId]) -> Iterator[frozenset[BookieId]]:
    for size in range(len(items) + 1):
        for chosen in combinations(items, size):
            yield frozenset(chosen)


def spec_of(row: dict[str, Any]) -> QuorumSpec:
    return QuorumSpec(**{k: row[k] for k in ("ensemble_size", "write_quorum", "ack_quorum")})


@pytest.mark.rule("Q5")
@pytest.mark.parametrize("sizes", [(3, 2, 3), (2, 3, 2), (1, 1, 0), (0, 0, 0), (3, 0, 0), (3, 3, -1)])
def test_quorums_that_do_not_nest_are_refused(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="E >= Qw >= Qa >= 1"):
        QuorumSpec(ensemble_size=sizes[0], write_quorum=sizes[1], ack_quorum=sizes[2])


@pytest.mark.parametrize("spec", list(shapes()), ids=str)
def test_one_turn_has_every_write_set_of_a_range(spec: QuorumSpec) -> None:
    for first in range(9):
        assert len(spec.one_turn(first)) == spec.ensemble_size
        for stop in range(first + 12):
            turn = spec.one_turn(first, stop)
            assert turn.start == first and turn.stop <= max(first, stop)
            assert {spec.positions(e) for e in turn} == {spec.positions(e) for e in range(first, stop)}


@pytest.mark.rule("Q1")
@pytest.mark.parametrize("spec", list(shapes()), ids=str)
def test_a_write_set_is_the_next_qw_positions(spec: QuorumSpec) -> None:
    ensemble = BOOKIES[: spec.ensemble_size]
    for entry in (*range(20), 2**31 - 1, 2**31, 2**63 - 1):
        by_definition = [(entry + i) % spec.ensemble_size for i in range(spec.write_quorum)]
        assert list(spec.positions(entry)) == by_definition
        assert list(spec.write_set(entry, ensemble)) == [ensemble[p] for p in by_definition]
        for position in range(spec.ensemble_size):
            assert spec.holds(position, entry) == (position in by_definition)


@pytest.mark.rule("Q1")
@pytest.mark.parametrize("spec", list(shapes(5)), ids=str)
def test_a_stripe_is_what_a_position_holds(spec: QuorumSpec) -> None:
    for position in range(spec.ensemble_size):
        for first in range(8):
            for count in range(12):
                held = [e for e in range(first, first + count) if spec.holds(position, e)]
                assert list(spec.stripe(position, first, count)) == held
                assert spec.stripe_size(position, first, count) == len(held)
            assert spec.next_held(position, first) == next(e for e in range(first, 99) if spec.holds(position, e))


@pytest.mark.rule("Q1")
@pytest.mark.parametrize("spec", list(shapes()), ids=str)
def test_runs_of_one_bookie_are_joined_where_it_holds_nothing_between_them(spec: QuorumSpec) -> None:
    for position in range(spec.ensemble_size):
        held = [entry for entry in range(40) if spec.holds(position, entry)]
        runs = [(entry, 1, "stored") for entry in held]
        whole = (held[0], held[-1] - held[0] + 1, "stored")
        assert spec.joined(position, runs) == [whole]
        assert spec.joined(position, runs[:1]) == runs[:1]
        without = spec.joined(position, runs[:2] + runs[3:])
        assert without == [spec.joined(position, runs[:2])[0], spec.joined(position, runs[3:])[0]]
        refused = [*runs[:2], (held[2], 1, "refused"), *runs[3:]]
        assert [what for *_, what in spec.joined(position, refused)] == ["stored", "refused", "stored"]
        assert len(spec.joined(position, [runs[1], runs[0]])) == 2, "out of order"


@pytest.mark.rule("Q1")
@pytest.mark.parametrize("spec", list(shapes()), ids=str)
def test_whole_turns_are_joined_as_their_runs_one_by_one(spec: QuorumSpec) -> None:
    for position in range(spec.ensemble_size):
        held = [entry for entry in range(50) if spec.holds(position, entry)]
        for skipped in ((), (held[0],), (held[-1],), (held[4],), (held[0], held[1], held[-1])):
            runs: list[tuple[int, int, str]] = []
            for entry in (one for one in held if one not in skipped):
                if runs and entry == runs[-1][0] + runs[-1][1]:
                    runs[-1] = (runs[-1][0], runs[-1][1] + 1, "stored")
                else:
                    runs.append((entry, 1, "stored"))
            expected: list[tuple[int, int, str]] = []
            for first, count, what in runs:
                if expected and spec.next_held(position, expected[-1][0] + expected[-1][1]) == first:
                    expected[-1] = (expected[-1][0], first + count - expected[-1][0], what)
                else:
                    expected.append((first, count, what))
            assert spec.joined(position, runs) == expected, skipped
            swapped = [*runs[2:], *runs[:2]]
            assert sorted(
                entry
                for first, count, _ in spec.joined(position, swapped)
                for entry in range(first, first + count)
                if spec.holds(position, entry)
            ) == [one for one in held if one not in skipped], "an ack was made up"


def test_runs_that_begin_within_a_turn_are_no_whole_turns() -> None:
    """They say more than the bookie holds, which is not taken for an answer to what lies behind."""
    spec = QuorumSpec(ensemble_size=6, write_quorum=3, ack_quorum=2)
    assert [entry for entry in range(9) if spec.holds(2, entry)] == [0, 1, 2, 6, 7, 8]
    assert spec.joined(2, [(0, 1, "stored"), (1, 3, "stored"), (7, 3, "stored")]) == [
        (0, 4, "stored"),
        (7, 3, "stored"),
    ]


@pytest.mark.rule("Q3")
@pytest.mark.parametrize("spec", list(shapes()), ids=str)
def test_covered_means_that_no_ack_quorum_can_form_among_those_without_it(spec: QuorumSpec) -> None:
    ensemble = BOOKIES[: spec.ensemble_size]
    write_sets = [spec.write_set(n, ensemble) for n in range(spec.ensemble_size)]
    quorums = {frozenset(q) for w in write_sets for q in combinations(w, spec.ack_quorum)}
    for having in subsets(ensemble):
        every_ack_quorum_meets_it = all(having & q for q in quorums)
        assert spec.covers_ensemble(having, ensemble) == every_ack_quorum_meets_it
        if not spec.is_striped:
            assert every_ack_quorum_meets_it == (len(having) >= spec.ensemble_size - spec.ack_quorum + 1)
        without = set(ensemble) - having
        assert spec.covers_ensemble(having, ensemble) == (not any(q <= without for q in quorums))


@pytest.mark.rule("Q4")
@pytest.mark.parametrize("spec", list(shapes()), ids=str)
def test_absence_is_proved_when_the_others_are_no_ack_quorum(spec: QuorumSpec) -> None:
    for negatives in range(spec.write_quorum + 1):
        others_could_be_an_ack_quorum = spec.write_quorum - negatives >= spec.ack_quorum
        assert spec.proves_absence(negatives) == (not others_could_be_an_ack_quorum)


@pytest.mark.rule("W13")
@pytest.mark.parametrize("spec", list(shapes(5)), ids=str)
def test_alive_bookies_can_acknowledge_if_each_write_set_has_an_ack_quorum_of_them(spec: QuorumSpec) -> None:
    ensemble = BOOKIES[: spec.ensemble_size]
    for alive in subsets(ensemble):
        by_definition = all(
            len([b for b in spec.write_set(n, ensemble) if b in alive]) >= spec.ack_quorum
            for n in range(spec.ensemble_size)
        )
        assert spec.can_acknowledge(alive, ensemble) == by_definition


@pytest.mark.rule("W1")
@given(data=st.data(), spec=st.sampled_from(list(shapes(5))))
def test_acknowledged_below_counts_like_one_entry_at_a_time(data: st.DataObject, spec: QuorumSpec) -> None:
    first = data.draw(st.integers(0, 10))
    ends = [data.draw(st.integers(0, 30)) for _ in range(spec.ensemble_size)]
    entry = first
    while sum(ends[p] > entry for p in spec.positions(entry)) >= spec.ack_quorum:
        entry += 1
    assert spec.acknowledged_below(first, ends) == entry


@pytest.mark.rule("Q1")
def test_write_sets_and_stripes_are_those_of_the_official_client() -> None:
    for shape in load("ids.json")["write_sets"]:
        spec = spec_of(shape)
        for row in shape["rows"]:
            assert list(spec.positions(row["entry_id"])) == row["write_set"]
    for shape in load("ids.json")["striped_entries"]:
        spec = spec_of(shape)
        for row in shape["rows"]:
            count = row["last"] - row["first"] + 1
            assert list(spec.stripe(row["bookie_index"], row["first"], count)) == row["entries"]


@pytest.mark.rule("Q3")
def test_coverage_is_that_of_the_official_client() -> None:
    for shape in load("ids.json")["coverage"]:
        spec = spec_of(shape)
        ensemble = BOOKIES[: spec.ensemble_size]
        for row in shape["rows"]:
            assert spec.covers_ensemble({ensemble[i] for i in row["known"]}, ensemble) == row["covered"], row


@pytest.mark.rule("W1")
def test_ack_sets_count_distinct_members_of_the_write_set() -> None:
    for shape in load("ids.json")["ack_sets"]:
        spec = spec_of(shape)
        acks: set[int] = set()
        for step in shape["steps"]:
            verb, index = step["op"].split()[:2]
            if verb == "complete":
                acks.add(int(index))
                assert spec.is_acknowledged(len(acks)) == step["result"], (shape, step)
            elif verb == "remove":
                acks.discard(int(index))


def test_an_ack_quorum_of_the_ensemble_can_acknowledge_every_entry() -> None:
    for spec in shapes(5):
        ensemble = BOOKIES[: spec.ensemble_size]
        chosen = spec.ack_quorum_of(ensemble)
        assert list(chosen) == ensemble[: len(chosen)] and spec.can_acknowledge(set(chosen), ensemble)
        assert spec.is_striped or len(chosen) == spec.ack_quorum
