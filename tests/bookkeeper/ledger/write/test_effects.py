"""Effects as values."""

from __future__ import annotations

from typing import get_args

import pytest

from bookkeeper.ledger.write.effects import Confirm, Effect, Encode, PublishLac, Release, SendAdds

OF_EVERY_APPEND = (Encode, SendAdds, Confirm, Release, PublishLac)


@pytest.mark.parametrize("kind", get_args(Effect), ids=lambda kind: kind.__name__)
def test_effects_are_slotted_and_frozen_unless_every_append_makes_them(kind: type[object]) -> None:
    assert kind.__dataclass_params__.frozen == (kind not in OF_EVERY_APPEND)  # type: ignore[attr-defined]
    assert not hasattr(kind, "__dict__") or "__slots__" in vars(kind)
