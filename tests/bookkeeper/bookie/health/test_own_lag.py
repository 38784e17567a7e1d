from __future__ import annotations

import asyncio
import logging

import pytest

from bookkeeper.bookie.health.own_lag import EVERY_S, GAP_S, OwnLag, watch_own_lag
from bookkeeper.testing import World

EPOCH = 1_700_000_000_000


class Looks:
    """A process that is run, and at times is not."""

    def __init__(self) -> None:
        self.now = 100.0
        self.wall_ms = EPOCH
        self.lag = OwnLag(self.now, self.wall_ms)

    def pass_(self, seconds: float, *, wall_s: float | None = None) -> str | None:
        self.now += seconds
        self.wall_ms += int(1000 * (seconds if wall_s is None else wall_s))
        self.lag.sample(self.now, self.wall_ms)
        return self.lag.sentence(self.now)


def test_a_process_that_is_run_in_time_says_nothing() -> None:
    looks = Looks()
    assert {looks.pass_(EVERY_S + late) for late in (0.0, 0.1, 1.0) * 50} == {None}
    assert looks.lag.lately(looks.now, 10.0) == 0.0


def test_one_that_was_not_run_says_for_how_long_and_once_a_minute_the_worst_of_it() -> None:
    looks = Looks()
    first = looks.pass_(EVERY_S + 7.2)
    assert first is not None and first.startswith("this process was not run for 7.2 s")
    assert [looks.pass_(EVERY_S + late) for late in (3.0, 9.0, 4.0)] == [None, None, None]
    later = [text for _ in range(int(GAP_S / EVERY_S) + 1) if (text := looks.pass_(EVERY_S))]
    assert len(later) == 1 and "not run for 9.0 s" in later[0]
    assert {looks.pass_(EVERY_S) for _ in range(300)} == {None}


def test_how_long_it_was_not_run_lately_is_known_also_before_its_timer_was_called() -> None:
    """The session's end is told in the same turn of the loop, and may be told first."""
    looks = Looks()
    assert looks.lag.lately(looks.now + EVERY_S + 8.0, 10.0) == pytest.approx(8.0)
    looks.pass_(EVERY_S + 8.0)
    assert looks.lag.lately(looks.now, 10.0) == pytest.approx(8.0)
    for _ in range(25):
        looks.pass_(EVERY_S)
    assert looks.lag.lately(looks.now, 10.0) == 0.0


def test_a_clock_that_went_ahead_is_told_and_one_that_was_set_back_is_not() -> None:
    looks = Looks()
    assert looks.pass_(EVERY_S, wall_s=-3600.0) is None
    told = looks.pass_(EVERY_S, wall_s=600.0)
    assert told is not None and told.startswith("the wall clock went 599.5 s ahead: the machine was suspended")


@pytest.mark.rule("F5", "F6")
def test_a_process_that_was_frozen_says_so_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    with World(0) as world:
        node = world.node("b")

        async def story() -> None:
            lag = OwnLag(node.clock.monotonic(), node.clock.wall_ms())
            node.run(watch_own_lag(lag, node.clock, logging.getLogger("b")))
            await asyncio.sleep(5)
            node.freeze()
            await asyncio.sleep(20)
            node.thaw()
            await asyncio.sleep(5)

        with caplog.at_level(logging.WARNING, "b"):
            world.run(story())
    assert len(caplog.messages) == 1 and "was not run for 20.0 s" in caplog.messages[0]
