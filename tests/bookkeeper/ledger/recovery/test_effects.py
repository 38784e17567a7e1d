"""Effects as values."""

from __future__ import annotations

from typing import get_args

import pytest

from bookkeeper.ledger.recovery.effects import Effect


@pytest.mark.parametrize("kind", get_args(Effect), ids=lambda kind: kind.__name__)
def test_effects_are_frozen_and_slotted(kind: type[object]) -> None:
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert not hasattr(kind, "__dict__") or "__slots__" in vars(kind)
