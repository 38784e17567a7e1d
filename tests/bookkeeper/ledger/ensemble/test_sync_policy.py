"""What an ack is worth, by policy."""

from __future__ import annotations

import pytest

from bookkeeper.errors import AddTimeoutError, BookieFailedError, BookieUnavailableError, LedgerFencedError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.ensemble.acks import Acks
from bookkeeper.ledger.ensemble.member import EnsembleMember
from bookkeeper.ledger.ensemble.sync_policy import DeferredSync, ImmediateSync, sync_policy
from bookkeeper.ledger.quorum import QuorumSpec

B1, B2 = BookieId("b1"), BookieId("b2")
LOST = BookieUnavailableError("connection lost")
CONFIG = WriterConfig(stall_ms=500, add_timeout_ms=10_000)


def members(*marks: int) -> list[EnsembleMember]:
    spec = QuorumSpec(ensemble_size=len(marks), write_quorum=len(marks), ack_quorum=1)
    found = [EnsembleMember(BookieId(f"b{p + 1}"), p, Acks(spec, p, 0), 0.0) for p in range(len(marks))]
    for member, mark in zip(found, marks, strict=True):
        member.acks.add(0, mark)
    return found


def test_the_config_chooses_the_policy() -> None:
    assert isinstance(sync_policy(WriterConfig()), ImmediateSync)
    assert isinstance(sync_policy(WriterConfig(deferred_sync=True)), DeferredSync)


@pytest.mark.rule("W1", "W15")
def test_with_immediate_sync_an_ack_is_durable_and_a_bookie_that_fails_is_replaced() -> None:
    policy = ImmediateSync(CONFIG)
    assert (policy.stall_ms, policy.waits_for_trailing) == (500, False)
    assert policy.visible(7, 3) == 7
    assert policy.releasable(8, members(8, 5)) == 8
    assert policy.end_after_loss(B1, LOST) is None
    assert policy.may_close_after(AddTimeoutError())
    assert not policy.may_close_after(BookieFailedError())
    assert not policy.may_close_after(LedgerFencedError())


@pytest.mark.rule("W11")
def test_with_deferred_sync_only_a_force_is_durable_and_a_bookie_that_fails_ends_the_writer() -> None:
    policy = DeferredSync(CONFIG)
    assert (policy.stall_ms, policy.waits_for_trailing) == (10_000, True)
    assert policy.visible(7, 3) == 3
    assert policy.releasable(8, members(8, 5)) == 5, "b2 still needs what it refused"
    assert policy.releasable(4, members(8, 5)) == 4
    end = policy.end_after_loss(B2, LOST)
    assert isinstance(end, BookieFailedError)
    assert end.__cause__ is LOST
    assert "b2 failed" in str(end) and "connection lost" in str(end)
    assert policy.may_close_after(end) and policy.may_close_after(AddTimeoutError())
    assert not policy.may_close_after(LedgerFencedError())
