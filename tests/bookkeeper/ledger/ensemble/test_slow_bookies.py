"""Who falls behind."""

from __future__ import annotations

import pytest

from bookkeeper.ledger.ensemble.acks import Acks
from bookkeeper.ledger.ensemble.member import EnsembleMember
from bookkeeper.ledger.ensemble.slow_bookies import SlowBookies
from bookkeeper.ledger.quorum import QuorumSpec
from tests.bookkeeper.ledger.test_metadata import bookies

SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)


def members() -> list[EnsembleMember]:
    return [EnsembleMember(bookie, p, Acks(SPEC, p, 0), 0.0) for p, bookie in enumerate(bookies("b1 b2 b3"))]


@pytest.mark.rule("W15")
def test_who_stands_still_while_others_progress_is_suspected_first_and_named_later() -> None:
    slow_bookies, (b1, b2, b3) = SlowBookies(stall_ms=500, trail_bytes_max=1000), members()
    for member in (b1, b2):
        member.acks.add(0, 10)
        member.progress_at = 0.4
    assert slow_bookies.hanging([b1, b2, b3], 10, 0.45) == []
    assert slow_bookies.hanging([b1, b2, b3], 10, 0.5) == []  # only suspected: perhaps its replies wait to be read
    assert slow_bookies.hanging([b1, b2, b3], 10, 0.6) == [b3]
    b3.acks.add(0, 10)
    assert slow_bookies.hanging([b1, b2, b3], 10, 0.7) == []


@pytest.mark.rule("W15")
def test_nobody_hangs_when_everybody_stands_still() -> None:
    slow_bookies, all_seats = SlowBookies(stall_ms=500, trail_bytes_max=1000), members()
    assert [slow_bookies.hanging(all_seats, 10, now) for now in (1.0, 2.0, 3.0)] == [[], [], []]


@pytest.mark.rule("W15")
def test_who_holds_up_the_others_is_measured_alone() -> None:
    slow_bookies, (b1, b2, b3) = SlowBookies(stall_ms=500, trail_bytes_max=1280), members()
    for member in (b1, b2):
        member.acks.add(0, 128)
        member.progress_at = 0.1
    b3.progress_at = 0.2
    slow_bookies.step(1280, 127)
    assert [slow_bookies.hanging([b1, b2, b3], 128, now) for now in (1.0, 2.0)] == [[], []]
    held_up = [slow_bookies.hanging([b1, b2, b3], 128, now, held_up=True) for now in (0.6, 1.0, 1.1)]
    assert held_up == [[], [], [b3]]


@pytest.mark.rule("W15")
def test_who_trails_by_so_many_bytes_is_named() -> None:
    slow_bookies, (b1, b2, b3) = SlowBookies(stall_ms=500, trail_bytes_max=1280), members()
    for member in (b1, b2):
        member.acks.add(0, 1000)
    for entry in range(127):
        slow_bookies.step((entry + 1) * 10, entry)
    assert slow_bookies.trailing([b1, b2, b3]) == []
    slow_bookies.step(1280, 127)
    assert slow_bookies.trailing([b1, b2, b3]) == [b3]
    b3.acks.add(0, 1)
    assert slow_bookies.trailing([b1, b2, b3]) == []
