"""The parts a replica plays: every legal way, and every illegal one refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import FencingToken
from journal_manager.errors import JournalInvariantError
from journal_manager.replicas.replica import Replica, ReplicaRole


def active(applied: int = 0, epoch: int = 1) -> Replica:
    replica = Replica()
    replica.restored(applied)
    replica.elected()
    replica.claimed(FencingToken(epoch, "a"), applied)
    replica.activate()
    return replica


def test_a_life_from_standby_to_active_and_back() -> None:
    replica = Replica()
    replica.restored(5)
    replica.replayed(6)
    replica.elected()
    replica.claimed(FencingToken(3, "a"), 8)
    assert (replica.role, replica.end, replica.caught_up) == (ReplicaRole.CATCHING_UP, 8, False)
    replica.replayed(7)
    replica.replayed(8)
    replica.activate()
    replica.logged(9)
    replica.fence(durable=9)
    assert (replica.role, replica.applied, replica.must_rebuild) == (ReplicaRole.FENCED, 9, False)
    replica.step_down()
    assert replica.role is ReplicaRole.STANDBY


@pytest.mark.rule("C8")
def test_it_does_not_answer_before_it_has_applied_everything() -> None:
    replica = Replica()
    replica.elected()
    for caught_up in (False, False, True):
        assert replica.caught_up == caught_up
        if not caught_up:
            with pytest.raises(JournalInvariantError, match="C8"):
                replica.activate()
        if replica.role is ReplicaRole.CATCHING_UP and replica.token is None:
            replica.claimed(FencingToken(1, "a"), 1)
        elif not caught_up:
            replica.replayed(1)
    replica.activate()


@pytest.mark.rule("C4")
def test_edits_are_applied_in_order_and_once() -> None:
    replica = Replica()
    replica.restored(5)
    for txid in (5, 7):
        with pytest.raises(JournalInvariantError, match="C4"):
            replica.replayed(txid)
    replica.replayed(6, 9)
    assert replica.applied == 9
    for run in ((9, 11), (11, 12), (10, 9)):
        with pytest.raises(JournalInvariantError, match="C4"):
            replica.replayed(*run)
    replica = active(5)
    for txid in (5, 7):
        with pytest.raises(JournalInvariantError, match="C4"):
            replica.logged(txid)
    with pytest.raises(JournalInvariantError, match="C4"):
        replica.replayed(6)


@pytest.mark.rule("C4")
def test_what_a_standby_has_read_is_never_missing_from_the_journal() -> None:
    replica = Replica()
    replica.restored(5)
    replica.elected()
    with pytest.raises(JournalInvariantError, match="C4"):
        replica.claimed(FencingToken(1, "a"), 4)


@pytest.mark.rule("C8")
def test_each_claim_has_a_higher_epoch() -> None:
    replica = active(epoch=4)
    replica.fence(durable=0)
    replica.step_down()
    replica.elected()
    with pytest.raises(JournalInvariantError, match="C8"):
        replica.claimed(FencingToken(4, "a"), 0)


@pytest.mark.rule("C4")
def test_a_state_with_edits_that_may_be_lost_is_rebuilt_before_anything_else() -> None:
    replica = active()
    replica.logged(1)
    replica.logged(2)
    replica.fence(durable=1)
    assert replica.must_rebuild
    with pytest.raises(JournalInvariantError, match="C4"):
        replica.step_down()
    replica.restored(0)
    replica.step_down()
    replica.replayed(1)


@pytest.mark.rule("C4")
def test_it_follows_again_with_durable_edits_only() -> None:
    replica = active()
    replica.logged(1)
    replica.fence()
    with pytest.raises(JournalInvariantError, match="C4"):
        replica.step_down()


def test_what_was_durable_stays_known_when_the_state_is_rebuilt() -> None:
    replica = active(5, epoch=3)
    replica.logged(6)
    replica.logged(7)
    replica.fence(durable=6)
    assert (replica.known.txid, replica.known.epoch) == (6, 3)
    replica.restored(2, 1)
    replica.step_down()
    replica.forgotten()
    assert (replica.known.txid, replica.known.epoch) == (6, 3)


def test_a_failed_claim_leaves_a_state_of_durable_edits() -> None:
    replica = Replica()
    replica.elected()
    replica.fence()
    assert not replica.must_rebuild
    replica.step_down()
    replica.elected()


def test_an_active_replica_does_not_go_back_in_time() -> None:
    with pytest.raises(JournalInvariantError, match="C4"):
        active(5).restored(3)


@given(st.lists(st.sampled_from(["restored", "elected", "claimed", "activate", "logged", "fence", "step_down"])))
def test_whatever_is_tried_an_active_replica_has_claimed_and_caught_up(steps: list[str]) -> None:
    replica, epoch = Replica(), 0
    for step in steps:
        epoch += 1
        try:
            match step:
                case "restored":
                    replica.restored(1)
                case "claimed":
                    replica.claimed(FencingToken(epoch, "a"), 1)
                case "logged":
                    replica.logged(replica.applied + 1)
                case "fence":
                    replica.fence(durable=1)
                case _:
                    getattr(replica, step)()
        except JournalInvariantError:
            continue
        if replica.role is ReplicaRole.ACTIVE:
            assert replica.token is not None and replica.applied >= replica.end
        if replica.role is ReplicaRole.STANDBY:
            assert not replica.must_rebuild
    replica.fail()
    assert replica.role is ReplicaRole.FAILED
