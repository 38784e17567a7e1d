from __future__ import annotations

from bookkeeper import real


def test_clock_and_chance() -> None:
    clock = real.SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.wall_ms() > 1_700_000_000_000
    assert 0 <= real.SystemRng().random() < 1
