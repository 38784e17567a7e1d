"""A bookie of an ensemble."""

from __future__ import annotations

from bookkeeper.ids import BookieId
from bookkeeper.ledger.ensemble.acks import Acks
from bookkeeper.ledger.ensemble.member import EnsembleMember
from bookkeeper.ledger.quorum import QuorumSpec

SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)


def test_a_new_member_is_live_and_nothing_is_held_against_it() -> None:
    member = EnsembleMember(BookieId("b1:3181"), 1, Acks(SPEC, 1, 7), 2.5)
    assert (member.live, member.returned, member.failure, member.suspected_at) == (True, False, None, None)
    assert (member.position, member.acks.mark, member.progress_at) == (1, 7, 2.5)
