"""What was discarded: by id and epoch, however often it was done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager.edits.discarded_edits import NOTHING_DISCARDED, UNKNOWN_EPOCH, Cut, DiscardedEdits


@pytest.mark.rule("J10")
def test_an_edit_is_known_by_its_id_and_its_epoch() -> None:
    """An id that was used again was taken for the edit that had it before."""
    cut = NOTHING_DISCARDED.adding(11, 4, "j")
    assert cut.covers(11, 3) and cut.covers(20, 4) and cut.covers(11, UNKNOWN_EPOCH)
    assert not cut.covers(10, 3) and not cut.covers(11, 5)
    assert cut and not NOTHING_DISCARDED and not NOTHING_DISCARDED.covers(1, UNKNOWN_EPOCH)
    assert (cut.epoch, cut.journal, NOTHING_DISCARDED.epoch) == (4, "j", 0)
    assert (cut.first_after(4), cut.first_after(5), NOTHING_DISCARDED.first_after(0)) == (11, None, None)


def test_the_journal_is_named_once() -> None:
    assert NOTHING_DISCARDED.adding(5, 2, "one").adding(9, 3, "two").journal == "one"


@pytest.mark.rule("J10")
@given(st.lists(st.integers(1, 20), max_size=8))
def test_a_cut_that_a_later_one_contains_needs_no_place(firsts: list[int]) -> None:
    cuts = [Cut(first, 2 * epoch) for epoch, first in enumerate(firsts, 1)]
    short = NOTHING_DISCARDED
    for cut in cuts:
        short = short.adding(cut.first, cut.epoch, "j")
    for txid in range(22):
        for epoch in range(2 * len(firsts) + 2):
            assert short.covers(txid, epoch) == any(cut.covers(txid, epoch) for cut in cuts)
            assert short.first_after(epoch) == DiscardedEdits(tuple(cuts)).first_after(epoch)
    assert [cut.first for cut in short.cuts] == sorted({cut.first for cut in short.cuts})
