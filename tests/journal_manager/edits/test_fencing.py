"""Whose epoch it is."""

from __future__ import annotations

import pytest

from journal_manager import FencingToken, JournalFencedError
from journal_manager.edits import require_current


@pytest.mark.rule("C5")
def test_only_the_same_claim_is_current() -> None:
    mine = FencingToken(2, "me")
    require_current(mine, FencingToken(2, "me"))
    for other in (FencingToken(3, "me"), FencingToken(2, "you"), FencingToken(1, "me")):
        with pytest.raises(JournalFencedError, match="from epoch 2 of me, which may write no more") as caught:
            require_current(mine, other)
        assert (caught.value.epoch, caught.value.by) == (2, other)
