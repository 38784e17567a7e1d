"""One entry that is being looked for."""

from __future__ import annotations

from bookkeeper.errors import BookieUnavailableError
from bookkeeper.ledger.recovery.parts import EntryRead, reasons
from tests.bookkeeper.ledger.test_metadata import bookies

B1, B2, B3 = bookies("b1 b2 b3")


def test_those_who_were_not_asked_yet() -> None:
    reading = EntryRead(0, (B1, B2, B3), fence=True)
    reading.asked.add(B1)
    assert reading.unasked() == [B2, B3]
    reading.negative.add(B2)
    reading.unknown[B3] = None
    assert reading.unasked() == []


def test_reasons_are_told_once_each() -> None:
    lost = BookieUnavailableError("gone")
    assert reasons([lost, lost, None]) == "gone; no usable answer"
