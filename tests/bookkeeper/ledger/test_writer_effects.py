"""The numbers a writer works with, and effects as values."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.ledger.writer_effects import Confirm, Effect, Encode, Release, SendAdds, WriterConfig

OF_EVERY_APPEND = (Encode, SendAdds, Confirm, Release)


LIMITS = [name for name in WriterConfig.__dataclass_fields__ if name != "deferred_sync"]


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_positive(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        replace(WriterConfig(), **{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", get_args(Effect), ids=lambda kind: kind.__name__)
def test_effects_are_slotted_and_frozen_unless_every_append_makes_them(kind: type[object]) -> None:
    assert kind.__dataclass_params__.frozen == (kind not in OF_EVERY_APPEND)  # type: ignore[attr-defined]
    assert not hasattr(kind, "__dict__") or "__slots__" in vars(kind)
