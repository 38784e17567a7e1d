"""What a replica knows to have been durable, against the journal that it finds after it had to rebuild its state."""

from __future__ import annotations

import pytest

from journal_manager.edits import NOTHING, UNKNOWN_EPOCH, DiscardedEdits, SegmentInfo, TxId
from journal_manager.errors import ReplicaFailedError
from journal_manager.replicas.known_edits import KnownEdits, certain_end


def known(txid: int, epoch: int) -> KnownEdits:
    edits = KnownEdits()
    edits.durable(TxId(txid), epoch)
    return edits


def segment(first: int, last: int | None, epoch: int) -> SegmentInfo:
    return SegmentInfo(TxId(first), None if last is None else TxId(last), 1, epoch, "")


def test_it_never_goes_back_because_a_state_was_rebuilt() -> None:
    edits = known(5, 2)
    edits.durable(TxId(3), 4)
    assert (edits.txid, edits.epoch) == (5, 2)
    edits.durable(TxId(5), 4)
    assert (edits.txid, edits.epoch) == (5, 4)


@pytest.mark.rule("J2")
def test_a_journal_that_ends_before_it_lacks_acknowledged_edits() -> None:
    known(5, 2).ensure_reached(TxId(5))
    with pytest.raises(ReplicaFailedError, match=r"ends at edit 4, and this replica .* up to 5.*newest copy back"):
        known(5, 2).ensure_reached(TxId(4))


@pytest.mark.rule("J10")
def test_what_was_discarded_by_order_is_not_expected_any_more() -> None:
    discarded = DiscardedEdits().adding(TxId(3), 2, "this")
    edits = known(5, 2)
    edits.without(discarded)
    assert edits.txid == 2
    edits.ensure_reached(TxId(2))
    edits.without(discarded)
    assert edits.txid == 2, "the same note says the same again"
    with pytest.raises(ReplicaFailedError):
        edits.ensure_reached(TxId(1))
    edits.without(discarded.adding(TxId(2), 3, "this"))
    edits.ensure_reached(TxId(1))
    later = known(5, 3)
    later.without(discarded)
    assert later.txid == 5, "it was logged after they were discarded"


@pytest.mark.rule("J10")
def test_a_segment_that_was_begun_later_has_other_edits_under_these_ids() -> None:
    edits = known(5, 2)
    for same in ([segment(1, 5, 2)], [segment(1, 5, 1)], [segment(1, 5, 2), segment(6, 9, 3)], [segment(6, None, 3)]):
        edits.ensure_same(same)
    for other in ([segment(1, 4, 2), segment(5, 9, 3)], [segment(1, 4, 2), segment(5, None, 3)]):
        with pytest.raises(ReplicaFailedError, match="put back to an older state"):
            edits.ensure_same(other)
    known(5, UNKNOWN_EPOCH).ensure_same([segment(5, 9, 3)])


def test_a_journal_ends_certainly_where_no_segment_is_in_progress() -> None:
    assert certain_end([]) == NOTHING
    assert certain_end([segment(1, 5, 1)]) == 5
    assert certain_end([segment(1, 5, 1), segment(6, None, 1)]) is None
