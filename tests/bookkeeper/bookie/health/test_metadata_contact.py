from __future__ import annotations

import pytest

from bookkeeper.bookie.health.metadata_contact import MetadataContact
from bookkeeper.bookie.health.own_lag import EVERY_S, OwnLag
from bookkeeper.ids import BookieId
from bookkeeper.meta.store import SessionState

B = BookieId("b1")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return int(self.now * 1000)


def contact(clock: Clock) -> MetadataContact:
    return MetadataContact(9.0, clock, OwnLag(clock.now, clock.wall_ms()))


def test_contact_is_lost_once_and_stands_again(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    found = contact(clock)
    found.on_session(SessionState.SUSPENDED, B)
    clock.now += 2.0
    found.on_session(SessionState.LOST, B)
    assert found.lost_for_s == 2.0
    assert [text[:36] for text in caplog.messages] == ["bookie b1 has lost contact with the "]
    found.on_session(SessionState.CONNECTED, B)
    assert found.lost_for_s is None


def test_before_it_serves_nobody_is_told(caplog: pytest.LogCaptureFixture) -> None:
    found = contact(Clock())
    found.on_session(SessionState.SUSPENDED, None)
    assert found.lost_for_s == 0.0 and caplog.messages == []


def test_a_bookie_that_was_not_run_names_that_and_not_the_store_and_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each minute it had "lost contact with the metadata store", which was a file of the same machine."""
    clock = Clock()
    found = contact(clock)
    for _ in range(4):
        clock.now += EVERY_S + 8.0
        found.on_session(SessionState.LOST, B)
        found.on_session(SessionState.CONNECTED, B)
    assert len(caplog.messages) == 1
    assert "bookie b1 was not run for 8.0 s, and its session with the metadata store (9 s" in caplog.messages[0]


def test_a_short_delay_is_no_excuse(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    found = contact(clock)
    clock.now += EVERY_S + 2.9
    found.on_session(SessionState.LOST, B)
    assert "has lost contact with the metadata store" in caplog.messages[0]
