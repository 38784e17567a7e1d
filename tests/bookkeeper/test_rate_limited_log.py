from __future__ import annotations

import logging

import pytest

from bookkeeper.rate_limited_log import RateLimit, RateLimitedLogger, one_line


@pytest.mark.rule("X38")
def test_one_line_a_second_with_the_number_of_those_left_out(caplog: pytest.LogCaptureFixture) -> None:
    moments = iter([100.0] * 5 + [101.0])
    log = RateLimitedLogger(logging.getLogger("test"), lambda: next(moments))
    for number in range(5):
        log.warning("refused: %s", number)
    log.warning("refused: %s", "again")
    assert [record.getMessage() for record in caplog.records] == ["refused: 0", "refused: again (4 more of this kind)"]


@pytest.mark.rule("X38")
def test_tracebacks_of_one_place_are_one_a_second(caplog: pytest.LogCaptureFixture) -> None:
    moments = iter([100.0] * 8 + [101.0] * 2)
    log = RateLimitedLogger(logging.getLogger("test"), lambda: next(moments))

    def one(error: Exception) -> None:
        try:
            raise error
        except Exception as raised:
            log.error("unexpected", raised)

    def other() -> None:
        try:
            raise ValueError("elsewhere")
        except ValueError as raised:
            log.error("unexpected", raised)

    for number in range(5):
        one(ValueError(f"{number}"))
    other()
    one(TypeError("of another kind"))
    log.error("unexpected", ValueError("never raised"))
    one(ValueError("again"))
    other()
    assert [(str(record.exc_info[1]), record.getMessage()) for record in caplog.records if record.exc_info] == [
        ("0", "unexpected"),
        ("elsewhere", "unexpected"),
        ("of another kind", "unexpected"),
        ("never raised", "unexpected"),
        ("again", "unexpected (4 more of this kind)"),
        ("elsewhere", "unexpected"),
    ]


@pytest.mark.rule("X38")
def test_each_kind_has_its_own_lines() -> None:
    limit = RateLimit(gap_s=30)
    assert [limit.admit(at, "slow") for at in (0, 1, 29.9)] == [0, None, None]
    assert limit.admit(2, "failed") == 0
    assert limit.admit(30, "slow") == 2
    assert limit.admit(60, "slow") == 0


@pytest.mark.rule("X38")
def test_nothing_from_outside_looks_like_a_line_of_its_own() -> None:
    assert one_line("/a b\u00e9") == "/a b\u00e9"
    assert "\n" not in str(one_line("/a\n2026-01-01 INFO all is well"))
    assert "\x1b" not in str(one_line("\x1b[2J"))
    assert len(str(one_line("x" * 100_000))) < 1100
    assert one_line(1.5) == 1.5
