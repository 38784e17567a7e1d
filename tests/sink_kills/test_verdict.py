"""The judge notices rows that are missing, come twice, or come from two runs."""

from __future__ import annotations

from tests.sink_kills.driver import rows_of
from tests.sink_kills.verdict import judge


def batch(number: int, run: str = "r", tasks: int = 2) -> list[bytes]:
    return [row for task in range(tasks) for row in rows_of(run, number, task)]


def test_whole_batches_of_one_run_each_are_good() -> None:
    found = judge([*batch(0), *batch(1, "s"), *batch(2)], 2, 2)
    assert found.is_good and found.batches == 3


def test_a_missing_batch_or_row_is_lost() -> None:
    assert judge([*batch(0), *batch(2)], 2, 2).lost
    assert judge(batch(0), 1, 2).lost == ["batch 1 is missing"]
    assert judge([], 0, 2).lost
    assert judge(batch(0)[:-1], 0, 2).lost


def test_a_batch_that_comes_again_is_there_twice() -> None:
    assert judge([*batch(0), *batch(0, "s")], 0, 2).twice
    assert judge([*batch(0), *batch(0)], 0, 2).twice
