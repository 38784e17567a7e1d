"""A provider comes from the place that the configuration names, or not at all."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.auth.config import AuthConfig
from bookkeeper.auth.provider_loader import client_provider, server_provider
from bookkeeper.errors import ConfigError
from bookkeeper.real import SystemClock

HERE = "tests.bookkeeper.auth.providers"


@pytest.mark.rule("X46")
def test_the_named_attribute_makes_the_provider_out_of_the_options() -> None:
    client = client_provider(AuthConfig(provider=f"{HERE}:client", options={"plugin": "other"}), Random(1))
    server = server_provider(AuthConfig(provider=f"{HERE}:server"), Random(1), SystemClock())
    assert client is not None and server is not None
    assert (client.plugin, server.plugin) == ("other", "gv-test-plugin")


@pytest.mark.parametrize("name", [None, "none", "tls"])
def test_ours_need_no_messages(name: str | None) -> None:
    assert server_provider(AuthConfig(provider=name), Random(1), SystemClock()) is None
    assert client_provider(AuthConfig(provider=name), Random(1)) is None


@pytest.mark.parametrize("place", ["no.such.module:x", f"{HERE}:nothing", f"{HERE}:broken", f"{HERE}:PLUGIN"])
def test_what_cannot_be_used_is_an_error_of_the_configuration(place: str) -> None:
    with pytest.raises(ConfigError, match=place):
        server_provider(AuthConfig(provider=place), Random(1), SystemClock())
