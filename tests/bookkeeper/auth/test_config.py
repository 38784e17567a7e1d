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


@pytest.mark.rule("X9")
@pytest.mark.parametrize("name", ["sasl", "token"])
def test_ours_take_a_file_and_can_be_insisted_on(name: str) -> None:
    config = AuthConfig(provider=name, options={"file": "/secret"}, required=True)
    assert (config.options, config.required, config.insecure) == ({"file": "/secret"}, True, False)


@pytest.mark.rule("X9")
@pytest.mark.parametrize("name", [None, "none", "tls", "token", "my.auth:provider"])
def test_only_sasl_can_be_told_to_speak_in_clear(name: str | None) -> None:
    assert AuthConfig(provider="sasl", insecure=True).insecure
    with pytest.raises(ConfigError, match=r"auth\.insecure is for"):
        AuthConfig(provider=name, insecure=True)


@pytest.mark.rule("X58")
def test_a_clients_settings_from_the_environment() -> None:
    given = {"BK_AUTH": "sasl", "BK_AUTH_FILE": "/me", "BK_AUTH_REQUIRED": "1", "BK_AUTH_INSECURE": "1", "PATH": "/bin"}
    told = AuthConfig(provider="sasl", options={"file": "/me"}, required=True, insecure=True)
    assert AuthConfig.from_environment(given) == told
    assert AuthConfig.from_environment({"BK_AUTH": "token"}) == AuthConfig(provider="token")
    assert AuthConfig.from_environment({"BK_AUTH": "", "BK_AUTH_REQUIRED": "0"}) is None
    for wrong, why in (
        ({"BK_AUTH_FILE": "/me"}, "needs BK_AUTH"),
        ({"BK_AUTH_REQUIRED": "1"}, "needs BK_AUTH"),
        ({"BK_AUTH": "sasl", "BK_AUTH_REQUIRED": "yes"}, "BK_AUTH_REQUIRED in the environment must be 0 or 1"),
        ({"BK_AUTH": "kerberos"}, "MODULE:ATTRIBUTE"),
    ):
        with pytest.raises(ConfigError, match=why):
            AuthConfig.from_environment(wrong)
