"""Bytes per second."""

from __future__ import annotations

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.replication.copying import Throttle


def test_without_a_rate_nothing_waits() -> None:
    throttle = Throttle()
    throttle.spend(10**12, 5.0)
    assert throttle.ready_at(5.0) == 5.0


def test_over_a_long_time_the_rate_is_kept() -> None:
    throttle, now, moved = Throttle(1000), 100.0, 0
    while now < 200.0:
        now = throttle.ready_at(now)
        throttle.spend(700, now)
        moved += 700
    assert 100_000 - 1400 <= moved <= 100_000 + 1000 + 1400


def test_time_that_was_not_used_is_not_saved_up() -> None:
    throttle = Throttle(1000)
    throttle.spend(1000, 0.0)
    assert throttle.ready_at(1000.0) == 1000.0
    throttle.spend(5000, 1000.0)
    assert throttle.ready_at(1000.0) == pytest.approx(1004.0)


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(ConfigError, match="bytes_per_s must be at least 0"):
        Throttle(-1)
