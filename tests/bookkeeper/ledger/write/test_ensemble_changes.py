"""From verdicts to effects; whole stories are in test_writer.py."""

from __future__ import annotations

import pytest

from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.ensemble.sync_policy import sync_policy
from bookkeeper.ledger.ensemble.writer_ensemble import WAIT, EndWriter, Readmit, Replace, WatchAgain, WriterEnsemble
from bookkeeper.ledger.metadata import Fragment
from bookkeeper.ledger.write.alarm import Alarm
from bookkeeper.ledger.write.effects import ChangeEnsemble, Effect, MarkMissing, SendAdds, WatchIncarnation
from bookkeeper.ledger.write.ensemble_changes import EnsembleChanges
from bookkeeper.ledger.write.member_shares import MemberShares
from bookkeeper.ledger.write.progress import WriterProgress
from tests.bookkeeper.ledger.write.test_writer import B1, B2, B3, B4, LOST, SPEC


class Parts:
    """The parts around the changes of a writer with four entries, two of which b1 and b3 have, so that they count."""

    def __init__(self) -> None:
        config = WriterConfig(change_retry_ms=1000, stall_ms=500)
        self.ensemble = WriterEnsemble(SPEC, (B1, B2, B3), config, sync_policy(config))
        self.progress = WriterProgress()
        self.progress.append((1,) * 4, 9.0)
        for bookie in (B1, B3):
            self.ensemble.by_bookie[bookie].acks.add(0, 2)
        self.progress.acknowledge(2)
        self.progress.last_add_confirmed = EntryId(1)
        shares = MemberShares(SPEC, self.ensemble, self.progress)
        self.changes = EnsembleChanges(self.ensemble, shares, self.progress, Alarm(), config.stall_ms)
        self.effects: list[Effect] = []

    def fail(self, bookie: BookieId, now: float = 0.0) -> list[Effect]:
        return self.follow(self.ensemble.on_bookie_failed(bookie, LOST), now)

    def follow(self, verdict: object, now: float = 0.0) -> list[Effect]:
        effects: list[Effect] = []
        assert self.changes.perform(verdict, now, effects) is None  # type: ignore[arg-type]
        return effects


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.mark.rule("W5")
def test_failed_bookies_are_watched_and_a_change_is_asked_for_once(parts: Parts) -> None:
    wanted = ChangeEnsemble((B2,), (B1, B3), EntryId(2), 1)
    assert parts.fail(B2) == [WatchIncarnation(B2), wanted]
    assert parts.fail(B3) == [WatchIncarnation(B3)], "one change is in flight"
    assert parts.follow(Replace(())) == []


def test_a_verdict_that_waits_does_nothing_and_one_that_watches_watches(parts: Parts) -> None:
    assert parts.follow(WAIT) == []
    assert parts.follow(WatchAgain(B2)) == [WatchIncarnation(B2)]


def test_a_verdict_that_ends_the_writer_is_handed_back(parts: Parts) -> None:
    effects: list[Effect] = []
    assert parts.changes.perform(EndWriter(LOST), 0.0, effects) is LOST
    assert effects == []


@pytest.mark.rule("W10b", "W14")
def test_a_bookie_that_is_used_again_gets_what_is_unconfirmed_and_what_it_missed_is_noted(parts: Parts) -> None:
    member = parts.ensemble.by_bookie[B2]
    parts.ensemble.on_bookie_failed(B2, LOST)
    effects = parts.follow(Readmit(member), 2.0)
    assert effects == [MarkMissing(B2, EntryId(0), EntryId(1)), SendAdds(B2, EntryId(2), 2, 1), WakeAt(2.5)]
    assert member.live and member.acks.mark == 2


@pytest.mark.rule("W4", "W5", "W14")
def test_after_a_change_the_stand_in_gets_what_is_unconfirmed_and_who_failed_meanwhile_is_next(parts: Parts) -> None:
    parts.fail(B2)
    parts.fail(B3)
    asked, effects = parts.ensemble.end_change(), list[Effect]()
    assert asked == (B2,)
    parts.changes.on_committed(asked, Fragment(EntryId(2), (B1, B4, B3)), 1.0, effects)
    assert effects == [
        MarkMissing(B2, EntryId(0), EntryId(1)),
        SendAdds(B4, EntryId(2), 2, 1),
        ChangeEnsemble((B3,), (B1, B4), EntryId(2), 2),
        WakeAt(1.5),
    ]


@pytest.mark.rule("W13")
def test_after_a_change_with_too_few_stand_ins_the_others_are_tried_for_later(parts: Parts) -> None:
    for bookie in (B2, B3):
        parts.ensemble.on_bookie_failed(bookie, LOST)
    parts.changes.request(0.0, [])
    asked, effects = parts.ensemble.end_change(), list[Effect]()
    assert asked == (B2, B3)
    parts.changes.on_committed(asked, Fragment(EntryId(2), (B1, B4, B3)), 1.0, effects)
    assert effects[-2:] == [WakeAt(2.0), WakeAt(1.5)], "the pause after a change, and a look at the stand-in"
    assert parts.ensemble.retry_at == 2.0


@pytest.mark.rule("R13")
def test_a_writer_that_closes_seats_the_stand_in_and_sends_it_nothing(parts: Parts) -> None:
    parts.fail(B2)
    parts.ensemble.end_change()
    effects: list[Effect] = []
    parts.changes.seat(Fragment(EntryId(2), (B1, B4, B3)), 1.0, effects, send=False)
    assert effects == [MarkMissing(B2, EntryId(0), EntryId(1))]
    assert parts.ensemble.live_bookies == (B1, B4, B3)


@pytest.mark.rule("W13")
def test_a_change_that_was_not_made_is_tried_again_later_and_who_came_back_is_used(parts: Parts) -> None:
    parts.fail(B2)
    parts.fail(B3)
    parts.ensemble.end_change()
    parts.ensemble.by_bookie[B3].returned = True
    effects: list[Effect] = []
    parts.changes.on_not_made(1.0, effects)
    assert effects == [SendAdds(B3, EntryId(2), 2, 2), WakeAt(1.5)]
    assert (parts.ensemble.failed_bookies, parts.ensemble.retry_at) == ((B2,), 2.0)
