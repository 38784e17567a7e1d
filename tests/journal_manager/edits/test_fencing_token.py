"""Whose epoch it is."""

from __future__ import annotations

import pytest

from journal_manager import FencingToken, JournalFencedError


@pytest.mark.rule("C5")
def test_only_the_same_claim_is_current() -> None:
    mine = FencingToken(2, "me")
    mine.ensure_current(FencingToken(2, "me"))
    for other in (FencingToken(3, "me"), FencingToken(2, "you"), FencingToken(1, "me")):
        with pytest.raises(JournalFencedError, match="from epoch 2 of me, which may write no more") as caught:
            mine.ensure_current(other)
        assert (caught.value.epoch, caught.value.by) == (2, other)


def test_a_later_claim_is_greater() -> None:
    assert FencingToken(2, "z") < FencingToken(3, "a")
