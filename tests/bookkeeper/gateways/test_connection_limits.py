from __future__ import annotations

import pytest

from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.connection_limits import (
    BYTES_PER_S,
    ConnectionTable,
    ConnectionWatch,
    ExpectedInput,
    Observation,
    ObservedTime,
    OverdueClock,
)


@pytest.mark.rule("X34")
def test_connections_are_counted_in_all_and_by_address() -> None:
    crowd = ConnectionTable(ConnectionLimits(connections_max=3, connections_per_host_max=2))
    assert [crowd.arrive(n, "a", shakes=False).refused is None for n in (1, 2, 3)] == [True, True, False]
    assert crowd.arrive(4, "b", shakes=False).refused is None
    assert "3 connections" in str(crowd.arrive(5, "c", shakes=False).refused), "three in all"
    crowd.leave(1)
    crowd.leave(1)
    assert len(crowd) == 2
    assert crowd.arrive(6, "a", shakes=False).refused is None
    assert crowd.arrive(7, "b", shakes=False).refused is not None


@pytest.mark.rule("X7")
def test_of_handshakes_the_busiest_address_gives_way() -> None:
    crowd = ConnectionTable(ConnectionLimits(handshakes_max=3))
    for number in (1, 2, 3):
        assert crowd.arrive(number, "flood", shakes=True).refused is None
    assert "3 TLS handshakes" in str(crowd.arrive(4, "flood", shakes=True).refused)
    welcome = crowd.arrive(5, "spark", shakes=True)
    assert (welcome.refused, welcome.gives_way) == (None, 1), "the oldest of those who have most"
    assert crowd.arrive(6, "spark", shakes=True).refused is not None, "as many as the others now"
    assert (crowd.handshakes, len(crowd)) == (3, 3)
    crowd.shaken(2)
    assert (crowd.handshakes, len(crowd)) == (2, 3)
    assert crowd.arrive(7, "flood", shakes=True).refused is None


def pace() -> OverdueClock:
    return OverdueClock(ConnectionLimits(slow_s=30, upload_idle_s=300), 0.0)


@pytest.mark.rule("X34")
@pytest.mark.parametrize(
    ("owes", "limit", "said"),
    [
        (ExpectedInput.HEAD, 30, "head"),
        (ExpectedInput.UNIT, 30, "body"),
        (ExpectedInput.CHUNK, 300, "upload"),
        (ExpectedInput.END, 30, "does not close"),
    ],
)
def test_what_is_owed_has_its_time(owes: ExpectedInput, limit: float, said: str) -> None:
    watched = pace()
    assert watched.check(Observation(owes), 0) is None
    assert watched.check(Observation(owes), limit - 1) is None
    assert said in str(watched.check(Observation(owes), limit))


def test_an_idle_connection_owes_nothing() -> None:
    watched = pace()
    assert [watched.check(Observation(ExpectedInput.NOTHING), now) for now in (0, 1e6)] == [None, None]


@pytest.mark.rule("X34")
def test_what_was_finished_begins_the_time_anew() -> None:
    watched = pace()
    for now, unit in ((0, 0), (29, 1), (58, 2), (87, 3)):
        assert watched.check(Observation(ExpectedInput.UNIT, unit), now) is None
    assert watched.check(Observation(ExpectedInput.UNIT, 3), 117) is not None


@pytest.mark.rule("X34")
def test_a_large_body_may_take_long_if_it_keeps_coming() -> None:
    watched = pace()
    enough = BYTES_PER_S * 30
    for step in range(5):
        assert watched.check(Observation(ExpectedInput.UNIT, received=step * enough), step * 30) is None
    assert watched.check(Observation(ExpectedInput.UNIT, received=5 * enough - 1), 150) is not None, "it dribbles"


@pytest.mark.rule("X34")
def test_replies_must_be_taken() -> None:
    watched = pace()
    assert watched.check(Observation(ExpectedInput.NOTHING, stalls=1), 0) is None
    assert watched.check(Observation(ExpectedInput.NOTHING, stalls=2), 29) is None, "it took some in between"
    assert watched.check(Observation(ExpectedInput.NOTHING, stalls=2), 58) is None
    assert watched.check(Observation(ExpectedInput.NOTHING, stalls=2), 59) == "the client does not read its replies"
    assert pace().check(Observation(ExpectedInput.NOTHING, stalls=1), 1000) is None, "seen for the first time"


# -- what is owed, told from outside -----------------------------------------------------------------------


def owed(watch: ConnectionWatch) -> ExpectedInput:
    return watch.observe(is_closing=False, is_stalled=False).owes


def test_a_request_from_its_first_byte_to_its_answer() -> None:
    watch, missing = ConnectionWatch(), [True]
    assert owed(watch) is ExpectedInput.HEAD, "a new connection owes its first request"
    watch.came(10)
    watch.taken_up(lambda: not missing)
    assert owed(watch) is ExpectedInput.NOTHING, "nobody waits for its body"
    watch.waits(between_chunks=False)
    assert owed(watch) is ExpectedInput.UNIT
    watch.came(10)
    missing.clear()
    watch.goes_on()
    watch.answered()
    assert owed(watch) is ExpectedInput.NOTHING, "idle"
    watch.came(1)
    assert owed(watch) is ExpectedInput.HEAD
    assert watch.observe(is_closing=True, is_stalled=False).owes is ExpectedInput.END


def test_what_comes_before_a_request_is_taken_up_is_its_body_from_then_on() -> None:
    watch = ConnectionWatch()
    for _ in range(100):
        watch.came(64 * 1024)
    watch.taken_up(lambda: False)
    watch.answered()
    assert owed(watch) is ExpectedInput.NOTHING, "refused before its end: the library takes the rest"
    watch.came(64 * 1024)
    assert owed(watch) is ExpectedInput.NOTHING, "it is the body's still"


def test_bytes_behind_a_complete_body_are_the_next_head_also_while_the_request_is_handled() -> None:
    watch = ConnectionWatch()
    watch.taken_up(lambda: True)
    watch.came(5)
    assert owed(watch) is ExpectedInput.NOTHING
    watch.answered()
    assert owed(watch) is ExpectedInput.HEAD


@pytest.mark.rule("X34")
def test_one_whose_body_takes_any_time_owes_only_the_rest_of_a_chunk_that_has_begun() -> None:
    """The cause: an event log whose application was idle for an hour lost its upload."""
    limits = ConnectionLimits(slow_s=30, upload_idle_s=300)
    watch, clock = ConnectionWatch(), OverdueClock(limits, 0.0)
    watch.came(10)
    watch.taken_up(lambda: False)
    watch.takes_any_time()
    watch.waits(between_chunks=True)
    assert owed(watch) is ExpectedInput.CHUNK_SOME_DAY
    for now in (0.0, 301.0, 1e6):
        assert clock.check(watch.observe(is_closing=False, is_stalled=False), now) is None
    watch.came(1)
    assert owed(watch) is ExpectedInput.UNIT
    watch.goes_on()
    watch.answered()
    watch.taken_up(lambda: False)
    watch.waits(between_chunks=True)
    assert owed(watch) is ExpectedInput.CHUNK, "the next request is another one"


def test_between_chunks_there_is_time_until_the_next_begins() -> None:
    watch = ConnectionWatch()
    watch.taken_up(lambda: False)
    watch.waits(between_chunks=True)
    assert owed(watch) is ExpectedInput.CHUNK
    watch.came(1)
    assert owed(watch) is ExpectedInput.UNIT


def test_whoever_stood_still_calls_nobody_slow() -> None:
    """A process that was not there for a minute (a busy machine) took its own absence for its clients' slowness, and
    hung up on uploads whose bytes lay in its sockets."""
    attention, watched = ObservedTime(5), pace()
    attention.resume(1000)
    for now in (1005, 1010, 1075, 1080):
        assert watched.check(Observation(ExpectedInput.UNIT), attention.check(now)) is None, now
    assert attention.seconds == 5 + 5 + 10 + 5
    assert [watched.check(Observation(ExpectedInput.UNIT), attention.check(now)) is None for now in (1085, 1090)] == [
        True,
        False,
    ]
    attention.resume(5000)
    assert attention.check(5005) == 40, "nobody was there in between"
