"""The limits of a gateway's port."""

from __future__ import annotations

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.gateways.config import ConnectionLimits


@pytest.mark.parametrize(
    "broken",
    [
        {"connections_max": 0},
        {"connections_per_host_max": 0},
        {"connections_max": 10, "connections_per_host_max": 11},
        {"handshakes_max": 0},
        {"handshake_s": 0},
        {"slow_s": -1},
        {"slow_s": 10, "upload_idle_s": 9},
    ],
)
def test_limits_that_limit_nothing_are_refused(broken: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        ConnectionLimits(**broken)  # type: ignore[arg-type]
