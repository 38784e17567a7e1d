"""A hold covers what is not committed, is renewed by itself, and ends by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from bookkeeper.launchers.machine_speed import stretch
from segments import EARLIEST, Hold, Position, PositionTruncatedError, StreamHeldError, sync
from spark_wal.data_source.hold_keeper import HOLD_FOR, RENEW_EVERY_S, HoldKeeper
from tests.spark_wal.data_source.clusters import written

QUICK_S = 0.02


@pytest.fixture
def stream(namespace: sync.Namespace, request: pytest.FixtureRequest) -> sync.Stream:
    return written(namespace, request.node.name, [2, 3], [4], [1])


@pytest.fixture
def keeper(stream: sync.Stream) -> Iterator[HoldKeeper]:
    made = HoldKeeper(stream, "query", every_s=QUICK_S)
    yield made
    made.stop()


def hold_of(stream: sync.Stream) -> Hold:
    (hold,) = stream.holds()
    return hold


def until_moved(stream: sync.Stream, before: Hold) -> Hold:
    """The hold, as soon as it is another one than before."""
    ends = time.monotonic() + 20 * stretch()
    while (found := hold_of(stream)) == before:
        assert time.monotonic() < ends, "it was never renewed"
    return found


def test_what_is_covered_is_neither_truncated_nor_removed(stream: sync.Stream, keeper: HoldKeeper) -> None:
    keeper.cover(Position(1, 1, 0))
    stream.truncate(Position(1, 1, 0))
    with pytest.raises(StreamHeldError, match="a Spark query reads from here on"):
        stream.truncate(Position(2, 0, 0))


def test_it_is_renewed_though_nobody_calls_and_ends_within_an_hour(stream: sync.Stream, keeper: HoldKeeper) -> None:
    keeper.cover(EARLIEST)
    (thread,) = (each for each in threading.enumerate() if each.name == "hold query")
    assert thread.daemon, "it does not keep the process from ending"
    first = hold_of(stream)
    second = until_moved(stream, first)
    assert first.until is not None and second.until is not None and second.until > first.until
    assert timedelta(seconds=2 * RENEW_EVERY_S) < HOLD_FOR < timedelta(hours=1)
    assert second.until - datetime.now(UTC) <= HOLD_FOR
    keeper.stop()
    thread.join(20 * stretch())
    assert not thread.is_alive()


def test_a_release_moves_it_with_the_next_renewal_and_never_back(stream: sync.Stream, keeper: HoldKeeper) -> None:
    keeper.cover(EARLIEST)
    before = hold_of(stream)
    keeper.release(Position(2, 0, 0))
    keeper.release(Position(1, 0, 0))
    while (found := until_moved(stream, before)).start != Position(2, 0, 0):
        before = found


def test_covering_an_earlier_place_puts_it_back_at_once(stream: sync.Stream, keeper: HoldKeeper) -> None:
    keeper.cover(Position(2, 0, 0))
    keeper.cover(Position(3, 0, 0))
    assert hold_of(stream).start == Position(2, 0, 0), "what is kept stays so"
    keeper.cover(Position(1, 1, 0))
    assert hold_of(stream).start == Position(1, 1, 0)


@pytest.mark.rule("F5")
def test_a_hold_that_was_not_renewed_for_long_is_put_again_before_anything_counts_as_kept(stream: sync.Stream) -> None:
    """The process stood still, or the cluster was away, and the hold has ended meanwhile."""
    now = [0.0]
    keeper = HoldKeeper(stream, "query", every_s=10_000.0, monotonic=lambda: now[0])
    keeper.cover(Position(1, 1, 0))
    stream.release_hold("query")
    keeper.cover(Position(2, 0, 0))
    assert not stream.holds(), "a moment ago it was there: the store is not asked"
    now[0] = HOLD_FOR.total_seconds()
    keeper.cover(Position(2, 0, 0))
    assert hold_of(stream).start == Position(1, 1, 0)
    stream.release_hold("query")
    stream.truncate(Position(2, 0, 0))
    now[0] *= 2
    with pytest.raises(PositionTruncatedError):
        keeper.cover(Position(2, 0, 0))
    keeper.stop()


def test_a_place_behind_the_last_record_that_went_is_held_where_the_stream_begins(
    stream: sync.Stream, keeper: HoldKeeper
) -> None:
    stream.truncate(Position(2, 0, 0))
    keeper.cover(Position(1, 2, 0))
    assert hold_of(stream).start == Position(2, 0, 0)


def test_a_place_whose_records_went_is_an_error_or_held_from_the_beginning(stream: sync.Stream) -> None:
    stream.truncate(Position(2, 0, 0))
    with pytest.raises(PositionTruncatedError):
        HoldKeeper(stream, "strict").cover(Position(1, 1, 0))
    assert not stream.holds()
    lenient = HoldKeeper(stream, "lenient", lenient=True)
    lenient.cover(Position(1, 1, 0))
    assert hold_of(stream).start == Position(2, 0, 0)
    lenient.stop()


@pytest.mark.rule("F5")
def test_a_wall_clock_that_is_put_back_by_an_hour_ends_no_hold(stream: sync.Stream) -> None:
    """Its end lay before the time of the gateway that removes records, though it had just been renewed."""
    now, began, back = [0.0], datetime.now(UTC), [timedelta()]
    keeper = HoldKeeper(
        stream,
        "query",
        every_s=10_000.0,
        monotonic=lambda: now[0],
        wall=lambda: began + timedelta(seconds=now[0]) - back[0],
    )
    keeper.cover(Position(1, 1, 0))
    now[0], back[0] = HOLD_FOR.total_seconds(), timedelta(hours=1)
    keeper.cover(Position(2, 0, 0))
    until = hold_of(stream).until
    assert until is not None and until >= began + 2 * HOLD_FOR - timedelta(milliseconds=1)
    keeper.stop()
