"""What is asked of a ledger is asked of the volume that has it."""

from __future__ import annotations

from bookkeeper.ids import LedgerId
from tests.bookkeeper.volumes.doors import Door


def test_a_ledger_that_is_nowhere_is_not_here() -> None:
    door = Door()
    door.add(1, 0)
    assert door.volumes.has(LedgerId(1)) and not door.volumes.has(LedgerId(2))
