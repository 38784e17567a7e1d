from __future__ import annotations

import pytest

from bookkeeper.launchers.patience import BUSY_TIMES, LOOK_S, QUIET_S, Patience, ProgressSigns

pytestmark = pytest.mark.rule("V9")


def waited(patience: Patience, *, cpu_share: float = 0.0, stretch: float = 1.0, most_s: float = 10_000.0) -> float:
    """How long it waits for somebody who makes no progress, and uses this share of a core."""
    at = 0.0
    while not patience.is_over(stretch) and at < most_s:
        at += 1.0
        patience.observe(at, ProgressSigns("same", at * cpu_share), stretch)
    return at


def test_who_does_nothing_is_waited_for_the_quiet_time() -> None:
    assert waited(Patience(0.0, ProgressSigns("same"))) == pytest.approx(QUIET_S, abs=1)


def test_a_slow_machine_is_given_more_time() -> None:
    assert waited(Patience(0.0, ProgressSigns("same")), stretch=8.0) == pytest.approx(8 * QUIET_S, abs=1)


def test_progress_makes_the_wait_begin_anew_however_often() -> None:
    patience = Patience(0.0, ProgressSigns(0))
    for number in range(1, 1000):
        patience.observe(number * (QUIET_S - 1), ProgressSigns(number), meant_s=QUIET_S)
        assert not patience.is_over()


@pytest.mark.parametrize("stretch", [1.0, 8.0])
def test_a_process_that_turns_in_circles_is_found_after_ten_times_the_quiet_time(stretch: float) -> None:
    found = waited(Patience(0.0, ProgressSigns("same")), cpu_share=1.0, stretch=stretch)
    assert found == pytest.approx(BUSY_TIMES * QUIET_S * stretch, abs=1)


def test_a_busy_process_with_a_twentieth_of_a_core_is_busy() -> None:
    busy = waited(Patience(0.0, ProgressSigns("same")), cpu_share=0.05, stretch=20.0)
    assert busy == pytest.approx(BUSY_TIMES * QUIET_S * 20, abs=1)


def test_one_that_looks_around_from_time_to_time_is_not_taken_for_a_busy_one() -> None:
    assert waited(Patience(0.0, ProgressSigns("same")), cpu_share=0.02) < 1.1 * QUIET_S


def test_a_waiter_that_stood_still_has_not_seen_that_nothing_happened() -> None:
    patience = Patience(0.0, ProgressSigns("same"))
    patience.observe(3600.0, ProgressSigns("same"))
    assert patience.silent_s == LOOK_S and not patience.is_over()


def test_a_waiter_whose_looks_take_long_counts_all_of_their_time() -> None:
    """A wait of a minute took half an hour: the condition asked two processes that did not answer."""
    patience = Patience(0.0, ProgressSigns("same"))
    patience.observe(14.0, ProgressSigns("same"), meant_s=13.0)
    patience.observe(3614.0, ProgressSigns("same"), meant_s=13.0)
    assert patience.silent_s == 14.0 + 13.0 + LOOK_S


def test_it_says_whether_there_was_work_without_progress_or_nothing() -> None:
    idle, busy = Patience(0.0, ProgressSigns("same")), Patience(0.0, ProgressSigns("same"))
    waited(idle)
    waited(busy, cpu_share=1.0)
    assert idle.reason() == "nothing has happened for 31 s"
    assert busy.reason() == "it works, but has made no progress for 301 s"
