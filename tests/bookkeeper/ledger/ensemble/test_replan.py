"""Re-planning a change from what is stored."""

from __future__ import annotations

import pytest

from bookkeeper.errors import LedgerClosedError, LedgerFencedError, MetadataFormatError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.ensemble.replan import replan, still_failed
from tests.bookkeeper.ledger.test_metadata import CLOSED, IN_RECOVERY, OPEN, bookies

STAND_INS = {BookieId("b2"): BookieId("b9")}


@pytest.mark.rule("W5")
def test_stand_ins_take_places_and_the_others_keep_theirs() -> None:
    assert replan(OPEN, 4, STAND_INS).last_fragment.ensemble == bookies("b1 b9 b3")
    assert replan(OPEN, 4, STAND_INS).last_fragment.first_entry == 4


@pytest.mark.rule("W5", "M8")
def test_a_change_that_was_made_already_is_left_alone() -> None:
    made = replan(OPEN, 4, STAND_INS)
    assert replan(made, 4, STAND_INS) is made
    assert still_failed(made, bookies("b2")) == ()
    assert still_failed(OPEN, bookies("b3 b2")) == bookies("b2 b3")


@pytest.mark.rule("W6")
def test_a_ledger_at_its_end_is_not_changed() -> None:
    with pytest.raises(LedgerClosedError):
        replan(CLOSED, 5, STAND_INS)
    with pytest.raises(LedgerFencedError):
        replan(IN_RECOVERY, 5, STAND_INS)


def test_a_stand_in_that_is_a_member_is_refused() -> None:
    with pytest.raises(MetadataFormatError):
        replan(OPEN, 4, {BookieId("b2"): BookieId("b3")})
