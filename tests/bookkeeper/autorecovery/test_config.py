"""What cannot be set is refused."""

from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.autorecovery import AutorecoveryConfig
from bookkeeper.errors import ConfigError


@pytest.mark.parametrize(
    "options",
    [
        {"lost_bookie_delay_s": -1},
        {"mass_loss_share": 0},
        {"mass_loss_share": 1.1},
        {"bookies_interval_s": 0},
        {"check_ledgers_per_s": -1},
        {"sample_percent": 101},
        {"poll_s": 0},
        {"parallel": 0},
        {"bytes_per_s": -1},
        {"grace_ms": -1},
        {"backoff_s": 0},
        {"backoff_s": 10, "backoff_max_s": 5},
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        AutorecoveryConfig(**options)
