"""When a segment ends: each reason, and all of them together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from segments.write.segment.rolling import RETRY_MAX_S, RETRY_MIN_S, Rolling, RollLimits, RollReason


def begun(limits: RollLimits, chance: float = 0.0) -> Rolling:
    rolling = Rolling(limits)
    rolling.begin(100.0, chance)
    return rolling


def test_each_limit_ends_a_segment_and_any_of_them_is_enough() -> None:
    """SEG-56: size, records, age and idle time decide together; whichever is reached first ends the segment."""
    rolling = begun(RollLimits(bytes_max=1000, records_max=10, age_max_s=60, idle_max_s=5))
    rolling.on_records(101)
    assert rolling.reason(101, 9, 999) is None
    assert rolling.reason(101, 9, 1000) is RollReason.BYTES
    assert rolling.reason(101, 10, 999) is RollReason.RECORDS
    assert rolling.reason(106, 9, 999) is RollReason.IDLE
    rolling.on_records(159)
    assert rolling.reason(160, 9, 999) is RollReason.AGE


def test_without_limits_only_a_wish_ends_a_segment() -> None:
    """SEG-60: with all limits off there is one segment."""
    rolling = begun(RollLimits())
    assert rolling.reason(1e9, 1 << 40, 1 << 50) is None
    assert rolling.wake_at(1, 1) is None
    rolling.request()
    assert rolling.reason(100, 1, 1) is RollReason.ASKED


def test_the_least_age_delays_and_the_greatest_forces() -> None:
    """SEG-62: a full segment waits for its least age; an old one ends although it is small."""
    rolling = begun(RollLimits(bytes_max=10, age_min_s=20, age_max_s=60))
    rolling.on_records(101)
    assert rolling.reason(119.9, 5, 500) is None
    assert rolling.wake_at(5, 500) == 120
    assert rolling.reason(120, 5, 500) is RollReason.BYTES
    assert rolling.reason(159.9, 1, 1) is None
    assert rolling.reason(160, 1, 1) is RollReason.AGE


def test_a_wish_does_not_wait_for_the_least_age_and_is_fulfilled_once() -> None:
    rolling = begun(RollLimits(age_min_s=20))
    rolling.request()
    assert rolling.reason(100, 0, 0) is None  # nothing to end
    assert rolling.reason(100, 1, 1) is RollReason.ASKED
    rolling.begin(100, 0)
    assert rolling.reason(100, 1, 1) is None


def test_an_empty_segment_is_never_ended() -> None:
    rolling = begun(RollLimits(age_max_s=1, idle_max_s=1))
    assert rolling.reason(1e6, 0, 0) is None
    assert rolling.wake_at(0, 0) is None


def test_a_roll_that_is_put_off_is_tried_again_after_a_pause_that_doubles() -> None:
    """SEG-63: without metadata there is no roll; it is tried again by itself."""
    rolling = begun(RollLimits(bytes_max=10))
    now = 100.0
    pauses = []
    for _ in range(12):
        assert rolling.reason(now, 1, 10) is RollReason.BYTES
        again = rolling.put_off(now)
        assert rolling.reason(again - 0.01, 1, 10) is None
        assert rolling.wake_at(1, 10) == again
        pauses.append(again - now)
        now = again
    assert pauses[:3] == [RETRY_MIN_S, 2 * RETRY_MIN_S, 4 * RETRY_MIN_S]
    assert pauses[-1] == RETRY_MAX_S
    rolling.begin(now, 0)
    assert rolling.put_off(now) == now + RETRY_MIN_S


def test_jitter_makes_the_age_longer_and_never_shorter() -> None:
    limits = RollLimits(age_max_s=100, jitter=0.05)
    assert begun(limits, 0.0).wake_at(1, 1) == 200
    assert begun(limits, 1.0).wake_at(1, 1) == 205


def test_other_limits_count_from_now_on() -> None:
    rolling = begun(RollLimits(age_max_s=100, jitter=0.1), 1.0)
    rolling.change(RollLimits(age_max_s=10, records_max=3))
    assert rolling.reason(111.1, 1, 1) is RollReason.AGE
    assert rolling.reason(101, 3, 1) is RollReason.RECORDS
    rolling.change(RollLimits())
    assert rolling.reason(1e9, 3, 1) is None
    rolling.change(RollLimits(age_max_s=1))
    assert rolling.reason(102, 1, 1) is RollReason.AGE


@given(
    st.builds(
        RollLimits,
        bytes_max=st.none() | st.integers(1, 100),
        records_max=st.none() | st.integers(1, 100),
        age_max_s=st.none() | st.floats(0.1, 50),
        idle_max_s=st.none() | st.floats(0.1, 50),
        age_min_s=st.floats(0, 50),
        jitter=st.floats(0, 0.5),
    ),
    st.integers(0, 120),
    st.integers(0, 120),
    st.floats(0, 1),
)
def test_a_segment_with_a_limit_by_time_is_due_when_the_clock_says_so(
    limits: RollLimits, records: int, size: int, chance: float
) -> None:
    rolling = begun(limits, chance)
    wake = rolling.wake_at(records, size)
    if wake is not None:
        assert rolling.reason(wake + 1e-6, records, size) is not None
        if wake > 100.001:
            assert rolling.reason(wake - 1e-3, records, size) is None
    else:
        assert rolling.reason(1e9, records, size) is None
