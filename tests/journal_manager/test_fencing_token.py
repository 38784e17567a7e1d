from __future__ import annotations

from journal_manager import FencingToken


def test_a_later_claim_is_greater() -> None:
    assert FencingToken(2, "z") < FencingToken(3, "a")
