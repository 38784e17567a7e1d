"""Settings: rules are quoted, misspelt options are refused."""

from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import ConfigError


def test_defaults_fit_together_and_reach_the_machines() -> None:
    config = ClientConfig(add_timeout_ms=9_000, speculative_read_ms=77)
    assert config.writer().add_timeout_ms == 9_000
    assert config.reader().hedge_ms == config.recovery().hedge_ms == 77
    assert config.long_poll_ms < 5_000 and config.request_timeout_ms == 5_000


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ({"protocol": "v4"}, 'protocol must be "v2" or "v3", not "v4"'),
        ({"pending_bytes_max": 0}, "pending_bytes_max must be more than 0, not 0"),
        ({"explicit_lac_delay_ms": -1}, "explicit_lac_delay_ms must be at least 0, not -1"),
        ({"long_poll_ms": 5_000}, "long_poll_ms must be less than request_timeout_ms (5000), not 5000"),
        ({"bookie_stall_ms": 20_000}, "bookie_stall_ms must be less than add_timeout_ms (15000), not 20000"),
        (
            {"reconnect_delay_min_ms": 3_000},
            "reconnect_delay_min_ms must be at most reconnect_delay_max_ms (2000), not 3000",
        ),
        ({"frame_size_max": 1_000_000}, "at most frame_size_max (1000000), not 5242880"),
        ({"metadata_session_ms": 999}, "metadata_session_ms must be at least 1000 and at most 300000, not 999"),
        (
            {"metadata_session_ms": 300_001},
            "metadata_session_ms must be at least 1000 and at most 300000, not 300001",
        ),
    ],
)
def test_a_value_that_is_not_allowed_is_told_with_what_is(setting: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError) as error:
        ClientConfig(**setting)
    assert rule in str(error.value)


def test_a_mapping_becomes_a_config_and_an_unknown_key_is_refused() -> None:
    assert ClientConfig.from_mapping({"protocol": "v2", "read_window": 7}) == ClientConfig(protocol="v2", read_window=7)
    with pytest.raises(ConfigError, match="unknown option: metadata_session_s"):
        ClientConfig.from_mapping({"metadata_session_s": 4})
    with pytest.raises(ConfigError, match="unknown option: read_windw"):
        ClientConfig.from_mapping({"read_windw": 7})
    with pytest.raises(ConfigError, match='client settings: read_window must be a whole number, not "7"'):
        ClientConfig.from_mapping({"read_window": "7"})
    with pytest.raises(ConfigError, match=r'auth\.required must be true or false, not "no"'):
        ClientConfig.from_mapping({"auth": {"provider": "my.auth:provider", "required": "no"}})
    with pytest.raises(ConfigError, match=r"long_poll_ms must be less than request_timeout_ms \(5000\), not 10000"):
        ClientConfig.from_mapping({"long_poll_ms": 10_000})
