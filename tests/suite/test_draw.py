"""Which buckets a run draws."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.suite.costs import DRAWN, DRAWN_OUTSIDE, Cost, Costs, table
from tests.suite.draw import BUCKETS, DRAW_S, buckets, drawn, number_of
from tests.suite.selection import selection


def some_costs(*seconds: float) -> Costs:
    costs = Costs()
    for number, cost in enumerate(seconds):
        kind = DRAWN if number % 2 else DRAWN_OUTSIDE
        costs.of[kind][f"tests/test_{number}.py"] = Cost(1, cost)
    return costs


def test_every_unit_is_in_one_bucket_and_they_cost_about_the_same() -> None:
    costs = some_costs(*(float(1 + number % 17) for number in range(200)))
    every = buckets(costs)
    units = [unit for bucket in every for unit in bucket.units]
    assert len(every) == BUCKETS
    assert sorted(units) == sorted(costs.of[DRAWN] | costs.of[DRAWN_OUTSIDE])
    assert max(bucket.seconds for bucket in every) < 1.2 * min(bucket.seconds for bucket in every)


def test_no_bucket_of_what_was_recorded_is_dearer_than_a_draw() -> None:
    """A unit that is larger than a bucket is divided, in ``core.toml``."""
    every = buckets(table())
    assert max(bucket.seconds for bucket in every) < min(DRAW_S, 1.1 * min(bucket.seconds for bucket in every))


def test_every_part_of_a_module_that_is_divided_was_recorded() -> None:
    known = table().drawn_units
    parts = {f"{module}::{part}" for module, some in selection().divided.items() for part in some}
    assert parts - known == set(), "a part that no test's id has, or one without a row in costs.tsv"


def test_so_many_commits_in_a_row_go_through_all_of_it() -> None:
    every = buckets(some_costs(*[100.0] * 60))
    seen = {bucket.number for number in range(1234, 1234 + BUCKETS) for bucket in drawn(every, number, 1.0)}
    assert seen == set(range(BUCKETS))


@pytest.mark.parametrize(
    ("seconds", "speed", "count"),
    [
        (DRAW_S / 3, 1.0, 3),
        (DRAW_S / 3, 0.5, 1),
        (DRAW_S * 2, 1.0, 1),
        (DRAW_S / 3, 2.0, 6),
        (1.0, 0.24, 0),
        (DRAW_S, 0.25, 1),
    ],
)
def test_a_quick_machine_takes_more_and_a_slow_one_nothing(seconds: float, speed: float, count: int) -> None:
    every = buckets(some_costs(*[seconds] * BUCKETS))
    assert len(drawn(every, 3, speed)) == count


def test_a_machine_with_time_for_everything_takes_each_bucket_once() -> None:
    every = buckets(some_costs(*[1.0] * BUCKETS))
    assert [bucket.number for bucket in drawn(every, 18, 1.0)] == [18, 19, *range(18)]


def git(where: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(where), *identity, *words], check=True, capture_output=True)


def test_the_run_before_a_commit_draws_what_the_commit_draws(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    clean = number_of(tmp_path)
    (tmp_path / "file").write_text("new")
    dirty = number_of(tmp_path)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "second")
    assert (clean, dirty, number_of(tmp_path)) == (1, 2, 2)


def test_without_a_history_the_files_say_the_number(tmp_path: Path) -> None:
    """A shallow clone has one commit, whatever the project's history is."""
    (tmp_path / "bookkeeper").mkdir()
    module = tmp_path / "bookkeeper" / "module.py"
    module.write_text("a = 1\n")
    first = number_of(tmp_path)
    assert number_of(tmp_path) == first
    module.write_text("a = 2\n")
    assert number_of(tmp_path) != first
