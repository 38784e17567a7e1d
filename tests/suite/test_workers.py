"""How many processes a run uses."""

from __future__ import annotations

import pytest

from tests.suite.workers import here, workers


@pytest.mark.parametrize(
    ("cores", "quota", "memory", "load", "count", "why"),
    [
        (16, None, 64_000_000_000, 0.1, 16, "16 cores"),
        (16, 1.0, 64_000_000_000, 0.1, 1, "a quota of 1 cores"),
        (16, 0.1, None, 0.1, 1, "a quota of 0.1 cores"),
        (16, None, 2_000_000_000, 0.1, 1, "2.0 GB of free memory"),
        (8, None, None, 5.2, 3, "of which others use 5.2"),
        (2, None, None, 9.0, 1, "of which others use 9.0"),
        (2, 4.0, 1_000, 0.0, 1, "0.0 GB"),
    ],
)
def test_the_narrowest_limit_counts_and_is_named(
    cores: int, quota: float | None, memory: int | None, load: float, count: int, why: str
) -> None:
    found, told = workers(cores, quota, memory, load)
    assert found == count
    assert why in told


def test_this_machine_has_at_least_one() -> None:
    count, why = here()
    assert count >= 1
    assert str(count) in why
