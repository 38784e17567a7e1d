"""What machines share."""

from __future__ import annotations

from bookkeeper.ledger.effects import WakeAt


def test_a_wish_to_be_woken_is_a_value() -> None:
    assert WakeAt(1.5) == WakeAt(1.5) != WakeAt(2.0)
