"""How many processes a run uses."""

from __future__ import annotations

import pytest

from tests.suite.workers import _busy_ticks, here, workers


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


@pytest.mark.parametrize(("busy", "load", "told"), [(0, 8.0, None), (60, 8.0, "1.2"), (60, 0.1, None)])
def test_what_has_ended_counts_no_more_and_what_rests_for_a_moment_neither(
    busy: int, load: float, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter([1000, 1000 + busy])
    now = iter([7.0, 7.5])
    monkeypatch.setattr("tests.suite.workers._busy_ticks", lambda: next(ticks))
    monkeypatch.setattr("tests.suite.workers._quota", lambda: None)
    monkeypatch.setattr("tests.suite.workers._free_memory", lambda: None)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    monkeypatch.setattr("os.sysconf", lambda _: 100)
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    _, why = here()
    assert ("of which others use" in why) is (told is not None)
    assert told is None or f"others use {told}" in why


def test_this_machine_tells_what_its_cores_have_done() -> None:
    before = _busy_ticks()
    assert before is not None
    sum(range(2_000_000))
    assert (_busy_ticks() or 0) > before
