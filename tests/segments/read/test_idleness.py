from __future__ import annotations

from math import inf

from segments.position import Position
from segments.read.idleness import busy_until, idle_error

HERE = Position(1, 2, 0)


def test_a_wait_ends_when_the_reader_would_count_as_idle() -> None:
    assert busy_until(inf, 10.0, 5.0) == 15.0
    assert busy_until(12.0, 10.0, 5.0) == 12.0


def test_without_a_limit_or_a_first_read_nothing_ends_it_earlier() -> None:
    assert busy_until(inf, 10.0, None) == inf
    assert busy_until(20.0, None, 5.0) == 20.0


def test_it_is_idle_exactly_when_the_wait_ends() -> None:
    assert idle_error("s", HERE, 14.9, 10.0, 5.0) is None
    error = idle_error("s", HERE, 15.0, 10.0, 5.0)
    assert error is not None and error.position == HERE and "for 5 s" in str(error)
    assert idle_error("s", HERE, 1e9, 10.0, None) is None
    assert idle_error("s", HERE, 1e9, None, 5.0) is None
