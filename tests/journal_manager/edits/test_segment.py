"""A segment's only change: its end is fixed."""

from __future__ import annotations

import pytest

from journal_manager import SegmentInfo, SegmentMismatchError, SegmentState, TxId

OPEN = SegmentInfo(TxId(5), None, 1, 1, "here")


@pytest.mark.rule("C7")
def test_an_end_is_fixed_once() -> None:
    final = OPEN.finalized(TxId(9))
    assert (OPEN.state, final.state) == (SegmentState.IN_PROGRESS, SegmentState.FINALIZED)
    assert final.finalized(TxId(9)) is final
    for last in (8, 10):
        with pytest.raises(SegmentMismatchError):
            final.finalized(TxId(last))


def test_a_segment_without_edits_has_no_end() -> None:
    assert OPEN.finalized(TxId(5)).last == 5
    with pytest.raises(SegmentMismatchError):
        OPEN.finalized(TxId(4))


def test_it_reads_as_a_range() -> None:
    assert (str(OPEN), str(OPEN.finalized(TxId(9)))) == ("[5, ...]", "[5, 9]")
