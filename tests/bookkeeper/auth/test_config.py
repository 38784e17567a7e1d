"""Providers are named, never found."""

from __future__ import annotations

import pytest

from bookkeeper.auth.config import AuthConfig
from bookkeeper.errors import ConfigError


@pytest.mark.rule("X46")
@pytest.mark.parametrize("name", ["SASL", "tls ", "", "../evil:x", "a:b:c", "a-b:c", "mod:"])
def test_a_provider_is_one_of_ours_or_module_and_attribute(name: str) -> None:
    with pytest.raises(ConfigError, match="MODULE:ATTRIBUTE"):
        AuthConfig(provider=name)


def test_options_are_for_a_provider_of_ones_own() -> None:
    AuthConfig(provider="my.auth:provider", options={"file": "/secret"})
    with pytest.raises(ConfigError, match=r"auth\.options needs"):
        AuthConfig(provider="tls", options={"file": "/secret"})


@pytest.mark.rule("X10a")
@pytest.mark.parametrize("name", [None, "none", "tls"])
def test_only_a_provider_of_ones_own_can_be_insisted_on(name: str | None) -> None:
    assert not AuthConfig(provider="my.auth:provider").required
    assert AuthConfig(provider="my.auth:provider", required=True).required
    with pytest.raises(ConfigError, match=r"auth\.required needs"):
        AuthConfig(provider=name, required=True)


@pytest.mark.rule("X59")
def test_options_are_not_shown() -> None:
    assert "swordfish" not in repr(AuthConfig(provider="my.auth:provider", options={"word": "swordfish"}))
