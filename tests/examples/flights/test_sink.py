"""Idempotent by batch id, and by nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.flights.sink import DailyDelays, Sink

A1 = DailyDelays("2013-01-01", "UA", "EWR", 1, 1, 5, 5)
A2 = DailyDelays("2013-01-01", "UA", "EWR", 3, 2, 9, 5)
B = DailyDelays("2013-01-01", "AA", "JFK", 2, 0, None, None)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    found = Sink(tmp_path / "sink.db")
    yield found
    found.close()


def test_the_latest_state_of_a_group_stands(sink: Sink) -> None:
    sink.take(0, [A1, B])
    sink.take(1, [A2])
    assert sink.latest() == {("2013-01-01", "UA", "EWR"): A2, ("2013-01-01", "AA", "JFK"): B}
    assert sink.batches() == 2


def test_a_batch_that_comes_twice_leaves_what_it_left_once(sink: Sink) -> None:
    for _ in range(3):
        sink.take(0, [A1, B])
    sink.take(0, [B, A1])
    assert (sink.batches(), sink.contradictions()) == (1, [])
    assert len(sink._db.execute("SELECT * FROM result").fetchall()) == 2


def test_a_batch_that_comes_again_with_other_rows_is_a_contradiction_and_the_first_rows_stay(sink: Sink) -> None:
    sink.take(0, [A1])
    sink.take(1, [B])
    sink.take(0, [A2])
    sink.take(0, [])
    assert sink.contradictions() == [0]
    assert sink.latest()[("2013-01-01", "UA", "EWR")] == A1


def test_no_key_is_remembered_so_that_a_row_counted_twice_shows(sink: Sink) -> None:
    sink.take(0, [A1])
    sink.take(1, [A1])
    assert len(sink._db.execute("SELECT * FROM result").fetchall()) == 2


def test_batches_begun_more_than_once_are_the_replayed_ones(sink: Sink) -> None:
    for batch, driver in ((0, "1"), (1, "1"), (1, "2"), (2, "2"), (2, "2"), (3, "2")):
        sink.begin(batch, driver)
    assert sink.replayed() == 2


def test_a_batch_is_taken_as_a_whole_or_not_at_all(sink: Sink) -> None:
    broken = DailyDelays("2013-01-01", "UA", "EWR", object(), 0, None, None)  # type: ignore[arg-type]
    with pytest.raises((TypeError, sqlite3.Error)):
        sink.take(0, [broken])
    assert (sink.batches(), sink.latest()) == (0, {})
    sink.take(0, [A1])
    assert sink.batches() == 1


def test_another_driver_finds_what_was_taken(sink: Sink, tmp_path: Path) -> None:
    sink.take(0, [A1])
    other = Sink(tmp_path / "sink.db")
    other.take(0, [A2])
    assert (other.latest(), sink.contradictions()) == (sink.latest(), [0])
    other.close()
