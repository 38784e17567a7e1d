"""The order of runs: sides take turns, Java is warm before anything counts, nothing is done twice."""

from __future__ import annotations

from benchmarks.apache.plan import WARM_UP, parts, steps
from benchmarks.apache.rows import JAVA_ON_OURS, MAIN, NAMENODE, PAIR, SHIPPED, SIDES, TUNED, elsewhere


def test_every_row_has_its_rounds_on_all_its_sides_and_none_twice() -> None:
    plan = [step for step in steps("plain", MAIN) if step.round != WARM_UP]
    wanted = {
        ("plain", row.key, side, number) for row in MAIN for side in row.sides for number in range(1, row.rounds + 1)
    }
    assert {step.key for step in plan} == wanted
    assert len(plan) == len(wanted)


def test_another_side_begins_each_round() -> None:
    plan = [step for step in steps("far", elsewhere("far")) if step.row.key == "far-100" and step.round != WARM_UP]
    assert [step.side for step in plan if step.round == 1] == list(PAIR)
    assert [step.side for step in plan if step.round == 2] == [*PAIR[1:], PAIR[0]]


def test_java_is_warmed_up_over_each_protocol_before_anything_counts() -> None:
    plan = steps("plain", MAIN)
    first = next(number for number, step in enumerate(plan) if step.round != WARM_UP)
    assert all(step.round != WARM_UP for step in plan[first:])
    long = {(step.row.protocol, step.side) for step in plan[:first] if step.row.seconds >= 10}
    assert long == {(protocol, side) for protocol in ("v3", "v2") for side in (SHIPPED, TUNED)}


def test_a_name_nodes_rows_alone_are_warmed_up_by_the_heaviest_of_them() -> None:
    warm = [step for step in steps("plain", NAMENODE) if step.round == WARM_UP]
    assert [(step.side, step.row.arguments["window"]) for step in warm] == [(TUNED, 8), (JAVA_ON_OURS, 8)]
    assert warm[0].row.seconds >= 10


def test_bookies_are_weighed_and_ended_last() -> None:
    kinds = [step.row.kind for step in steps("plain", MAIN)]
    last = max(number for number, kind in enumerate(kinds) if kind not in ("memory", "start", "replay"))
    assert {"memory", "start", "replay"} == set(kinds[last + 1 :])
    assert kinds[last + 1] == "memory"


def test_the_whole_fits_into_half_an_hour() -> None:
    everything = [*steps("plain", MAIN)]
    for key in ("slow-sync", "far", "tls"):
        everything += steps(key, elsewhere(key))
    assert sum(step.estimate_s for step in everything) < 27 * 60


def test_adds_over_v2_have_clusters_of_their_own_and_no_row_is_lost() -> None:
    first, second = parts(MAIN)
    assert {(row.kind, row.protocol) for row in second} == {("add", "v2")}
    assert sorted(row.key for row in [*first, *second]) == sorted(row.key for row in MAIN)
    assert parts(elsewhere("far")) == [list(elsewhere("far"))]


def test_keys_of_rows_are_unique_and_their_sides_known() -> None:
    assert len({row.key for row in MAIN}) == len(MAIN)
    assert {side for row in MAIN for side in row.sides} <= set(SIDES)
