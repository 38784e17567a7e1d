"""The numbers that the protocol's machines work with."""

from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import ConfigError
from bookkeeper.ledger.config import ReadConfig, RecoveryConfig, WriterConfig

LIMITS = [
    (config, name)
    for config in (WriterConfig, RecoveryConfig, ReadConfig)
    for name in config.__dataclass_fields__
    if name != "deferred_sync"
]


@pytest.mark.parametrize(("config", "name"), LIMITS)
def test_limits_are_positive(config: type[Any], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        config(**{name: 0})


def test_a_client_that_sets_nothing_has_the_machines_own_limits() -> None:
    client = ClientConfig()
    assert client.writer() == WriterConfig()
    assert client.recovery() == RecoveryConfig()
    assert client.reader() == ReadConfig()
