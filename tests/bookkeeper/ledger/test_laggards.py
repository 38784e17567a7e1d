"""Who falls behind."""

from __future__ import annotations

import pytest

from bookkeeper.ledger.acks import Acks
from bookkeeper.ledger.laggards import Laggards
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.writer_parts import Seat
from tests.bookkeeper.ledger.test_metadata import bookies

SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)


def seats() -> list[Seat]:
    return [Seat(bookie, p, Acks(SPEC, p, 0), 0.0) for p, bookie in enumerate(bookies("b1 b2 b3"))]


@pytest.mark.rule("D13")
def test_who_stands_still_while_others_progress_is_suspected_first_and_named_later() -> None:
    laggards, (b1, b2, b3) = Laggards(stall_ms=500, trail_bytes_max=1000), seats()
    for seat in (b1, b2):
        seat.acks.add(0, 10)
        seat.progress_at = 0.4
    assert laggards.hanging([b1, b2, b3], 10, 0.45) == []
    assert laggards.hanging([b1, b2, b3], 10, 0.5) == []  # only suspected: perhaps its replies wait to be read
    assert laggards.hanging([b1, b2, b3], 10, 0.6) == [b3]
    b3.acks.add(0, 10)
    assert laggards.hanging([b1, b2, b3], 10, 0.7) == []


@pytest.mark.rule("D13")
def test_nobody_hangs_when_everybody_stands_still() -> None:
    laggards, all_seats = Laggards(stall_ms=500, trail_bytes_max=1000), seats()
    assert [laggards.hanging(all_seats, 10, now) for now in (1.0, 2.0, 3.0)] == [[], [], []]


@pytest.mark.rule("D13")
def test_who_holds_up_the_others_is_measured_alone() -> None:
    laggards, (b1, b2, b3) = Laggards(stall_ms=500, trail_bytes_max=1280), seats()
    for seat in (b1, b2):
        seat.acks.add(0, 128)
        seat.progress_at = 0.1
    b3.progress_at = 0.2
    laggards.step(1280, 127)
    assert [laggards.hanging([b1, b2, b3], 128, now) for now in (1.0, 2.0)] == [[], []]
    held_up = [laggards.hanging([b1, b2, b3], 128, now, held_up=True) for now in (0.6, 1.0, 1.1)]
    assert held_up == [[], [], [b3]]


@pytest.mark.rule("D13")
def test_who_trails_by_so_many_bytes_is_named() -> None:
    laggards, (b1, b2, b3) = Laggards(stall_ms=500, trail_bytes_max=1280), seats()
    for seat in (b1, b2):
        seat.acks.add(0, 1000)
    for entry in range(127):
        laggards.step((entry + 1) * 10, entry)
    assert laggards.trailing([b1, b2, b3]) == []
    laggards.step(1280, 127)
    assert laggards.trailing([b1, b2, b3]) == [b3]
    b3.acks.add(0, 1)
    assert laggards.trailing([b1, b2, b3]) == []
