from __future__ import annotations

import logging

import pytest

from bookkeeper.gateways.rate_limited_log import RateLimitedLogger, one_line
from bookkeeper.real import SystemClock


class SteppedClock(SystemClock):
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.rule("X38")
def test_one_line_a_second_with_the_number_of_those_left_out(caplog: pytest.LogCaptureFixture) -> None:
    clock = SteppedClock()
    log = RateLimitedLogger(logging.getLogger("test"), clock)
    for number in range(5):
        log.warning("refused: %s", number)
    clock.now += 1
    log.warning("refused: %s", "again")
    assert [record.getMessage() for record in caplog.records] == ["refused: 0", "refused: again (4 more of this kind)"]


@pytest.mark.rule("X38")
def test_nothing_from_outside_looks_like_a_line_of_its_own() -> None:
    assert one_line("/a b\u00e9") == "/a b\u00e9"
    assert "\n" not in str(one_line("/a\n2026-01-01 INFO all is well"))
    assert "\x1b" not in str(one_line("\x1b[2J"))
    assert len(str(one_line("x" * 100_000))) < 1100
    assert one_line(1.5) == 1.5
