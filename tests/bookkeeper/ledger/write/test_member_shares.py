"""Who is sent what, and who lacks what."""

from __future__ import annotations

import pytest

from bookkeeper.errors import BookieUnavailableError, InvariantError
from bookkeeper.ids import EntryId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.ensemble.sync_policy import sync_policy
from bookkeeper.ledger.ensemble.writer_ensemble import WriterEnsemble
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.write.effects import Effect, MarkMissing, SendAdds
from bookkeeper.ledger.write.member_shares import MemberShares
from bookkeeper.ledger.write.progress import WriterProgress
from tests.bookkeeper.ledger.test_metadata import bookies

B1, B2, B3 = bookies("b1 b2 b3")
LOST = BookieUnavailableError("connection lost")


def shares(write_quorum: int = 3, count: int = 4) -> tuple[MemberShares, WriterEnsemble, WriterProgress]:
    """Of a writer with so many entries, of which two are confirmed."""
    spec = QuorumSpec(ensemble_size=3, write_quorum=write_quorum, ack_quorum=write_quorum)
    config = WriterConfig()
    ensemble, progress = WriterEnsemble(spec, (B1, B2, B3), config, sync_policy(config)), WriterProgress()
    progress.append((1,) * count, 9.0)
    progress.acknowledge(2)
    progress.last_add_confirmed = EntryId(1)
    return MemberShares(spec, ensemble, progress), ensemble, progress


def test_a_run_goes_to_the_live_members_and_wakes_those_that_owed_nothing() -> None:
    of_three, ensemble, _ = shares()
    b1, b2, b3 = ensemble.members
    b1.acks.add(0, 4)
    ensemble.on_bookie_failed(B3, LOST)
    effects: list[Effect] = []
    of_three.send(EntryId(4), 2, 7.0, effects)
    assert effects == [SendAdds(B1, EntryId(4), 2, 0), SendAdds(B2, EntryId(4), 2, 1)]
    assert [member.progress_at for member in (b1, b2, b3)] == [7.0, 0.0, 0.0], "b2 owes the entries before"


def test_on_a_striped_ledger_a_member_without_a_share_is_sent_nothing() -> None:
    striped, ensemble, _ = shares(write_quorum=2)
    effects: list[Effect] = []
    striped.send(EntryId(4), 1, 0.0, effects)  # on b2 and b3
    assert effects == [SendAdds(B2, EntryId(4), 1, 1), SendAdds(B3, EntryId(4), 1, 2)]
    effects.clear()
    striped.send_from(ensemble.by_bookie[B2], 2, effects)
    striped.send_from(ensemble.by_bookie[B2], 4, effects)
    assert effects == [SendAdds(B2, EntryId(2), 2, 1)], "from 2 on it has entry 3; behind the end there is nothing"


@pytest.mark.rule("W8", "W14")
def test_what_is_sent_again_begins_where_packets_are_kept_and_the_rest_is_noted() -> None:
    of_three, ensemble, _ = shares()
    member, effects = ensemble.by_bookie[B2], list[Effect]()
    of_three.send_again(member, 0, 4, 2, effects)
    assert effects == [MarkMissing(B2, EntryId(0), EntryId(1)), SendAdds(B2, EntryId(2), 2, 1)]
    assert member.acks.mark == 2
    with pytest.raises(InvariantError, match="W8"):
        of_three.send_again(member, 2, 4, 3, effects)


@pytest.mark.rule("W14")
def test_what_members_lack_of_the_confirmed_entries_is_noted_of_live_and_failed_ones_apart() -> None:
    of_three, ensemble, _ = shares()
    b1, b2, _ = ensemble.members
    b1.acks.add(0, 4)
    b2.acks.add(0, 1)
    ensemble.on_bookie_failed(B3, LOST)
    noted: list[Effect] = []
    of_three.note_missing_of(noted, live=True)
    assert (noted, of_three.is_lagging) == ([MarkMissing(B2, EntryId(1), EntryId(1))], True)
    of_three.note_missing_of(noted, live=False)
    assert noted[1:] == [MarkMissing(B3, EntryId(0), EntryId(1))]
    b2.acks.add(1, 2)
    assert not of_three.is_lagging, "what is pending does not count, nor does a failed one"
