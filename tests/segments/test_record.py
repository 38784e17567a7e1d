from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.position import Position
from segments.record import AppendResult, Record, StoredRecord, from_ms, to_ms


@given(st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)))
def test_a_time_is_kept_to_the_millisecond(time: datetime) -> None:
    back = from_ms(to_ms(time))
    assert timedelta(0) <= time - back < timedelta(milliseconds=1)


def test_a_time_of_another_zone_is_the_same_moment() -> None:
    time = datetime(2026, 11, 23, 5, 0, tzinfo=timezone(timedelta(hours=1)))
    assert from_ms(to_ms(time)) == time


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        to_ms(datetime(2026, 1, 1))


def test_a_stored_record_shows_its_times_and_can_be_appended_elsewhere() -> None:
    event = datetime(2026, 1, 1, tzinfo=UTC)
    stored = StoredRecord(Position(1, 2, 3), 7, b"v", 5, b"k", {"h": b"x"}, to_ms(event), 1_000, None)
    assert stored.event_time == event
    assert stored.append_time == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert stored.as_record() == Record(b"v", 5, b"k", {"h": b"x"}, event)
    assert stored._replace(event_ms=None).event_time is None


def test_an_append_is_no_duplicate_unless_it_says_so() -> None:
    assert not AppendResult(Position(1, 1, 0), Position(1, 1, 0), 0, None).duplicate
