"""The limits of a copy and of a drain."""

from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.replication.config import CopyConfig, DrainConfig

LIMITS = [(CopyConfig, name) for name in CopyConfig.__dataclass_fields__] + [(DrainConfig, "parallel")]


@pytest.mark.parametrize(("config", "name"), LIMITS)
def test_limits_are_positive(config: type[Any], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        config(**{name: 0})
