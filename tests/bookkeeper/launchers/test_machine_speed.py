from __future__ import annotations

import pytest

from bookkeeper.launchers.machine_speed import (
    FRESH_S,
    LEAST_S,
    REFERENCE,
    SpeedGauge,
    given_speed,
    handed_on,
    speed,
    speed_text,
    stretch,
)


class Machine:
    """A machine on which time passes only by work."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.at = 100.0
        self.measurements = 0

    def now(self) -> float:
        return self.at

    def work(self, count: int) -> None:
        self.at += count / REFERENCE / self.share


@pytest.mark.parametrize("share", [2.0, 1.0, 0.12, 0.04])
def test_the_speed_is_what_the_wall_clock_says_over_half_a_second_of_work(share: float) -> None:
    machine = Machine(share)
    gauge = SpeedGauge(machine.now, machine.work)
    assert gauge.speed() == pytest.approx(share)
    assert machine.at - 100.0 >= LEAST_S


def test_it_is_measured_once_and_again_when_that_is_asked_for_and_not_too_often() -> None:
    machine = Machine(1.0)
    gauge = SpeedGauge(machine.now, machine.work)
    gauge.speed()
    machine.share = 0.1
    assert gauge.speed() == gauge.measured_again() == pytest.approx(1.0), "what is fresh counts"
    machine.at += FRESH_S
    assert gauge.measured_again() == gauge.speed() == pytest.approx(0.1)


def test_a_speed_that_was_handed_on_is_not_measured_until_it_is_asked_for_again() -> None:
    machine = Machine(0.5)
    gauge = SpeedGauge(machine.now, machine.work, given=0.2)
    assert (gauge.speed(), machine.at) == (0.2, 100.0)
    assert gauge.measured_again() == pytest.approx(0.5)


@pytest.mark.parametrize(("text", "value"), [("0.25", 0.25), (None, None), ("", None), ("fast", None), ("0", None)])
def test_an_environment_that_says_no_speed_says_nothing(text: str | None, value: float | None) -> None:
    assert given_speed(text) == value
    assert given_speed("inf") is given_speed("nan") is given_speed("-1") is None


def test_nothing_is_stretched_on_a_machine_like_the_reference_and_nothing_without_end() -> None:
    assert stretch(3.0) == stretch(1.0) == stretch(0.8) == 1.0
    assert stretch(0.125) == 8.0
    assert stretch(0.0) == stretch(0.01) == 100.0


def test_a_person_is_told_both_numbers() -> None:
    assert speed_text(0.12) == "this machine has 0.12 of the reference's speed: waits and sessions are 8 times as long"
    assert speed_text(1.6).endswith("1.6 of the reference's speed: waits and sessions are as long as usual")


def test_children_are_told_what_this_process_has_measured() -> None:
    assert given_speed(handed_on()["MACHINE_SPEED"]) == pytest.approx(speed(), rel=0.01)
