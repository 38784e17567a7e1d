"""What a writer knows to be missing."""

from __future__ import annotations

from bookkeeper.client.write.missing_copies import MissingCopies
from bookkeeper.ids import BookieId

B1 = BookieId("b1")


def test_ranges_are_noted_once_and_told_in_words() -> None:
    found = MissingCopies()
    found.note(B1, 3, 9)
    found.note(B1, 3, 9)
    found.note(B1, 12, 12)
    assert str(found) == "b1 lacks its share of 3..9, 12..12"
    assert found and not MissingCopies()
