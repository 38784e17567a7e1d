"""What is said of deleted ledgers that can still be brought back."""

from __future__ import annotations

from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.replication.decommissioning.deleted_copies import SHOWN, DeletedCopies, in_words

B1, B2 = BookieId("b1"), BookieId("b2")
DAY = 86_400_000


def test_the_reason_says_who_and_until_when() -> None:
    assert str(DeletedCopies(LedgerId(7), (B1, B2), DAY)) == (
        "ledger 7: it is deleted, can be brought back until 1970-01-02 00:00:00 UTC, and has copies on b1, b2"
    )
    assert DeletedCopies(LedgerId(7), (B1,)).reason == (
        "it is deleted, and its record is damaged: b1 may have copies of it"
    )


def test_many_are_told_in_one_sentence_with_the_last_end() -> None:
    many = [DeletedCopies(LedgerId(at), (B1,), at * DAY) for at in range(1, SHOWN + 3)]
    text = in_words(many)
    assert "brought back: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more. wait until 1970-01-13 00:00:00 UTC" in text
    assert text.startswith("b1 has copies") and text.endswith("give these copies up with --give-up-deleted")
