"""Settings of encryption: what does not fit together is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.net.tls import ServerTls, TlsConfig


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"ca": ""}, "tls.ca"),
        ({"ca": "c", "key": "k"}, "tls.key needs tls.cert"),
        ({"ca": "c", "identity": "spiffe://x/bookie"}, "{bookie_id}"),
        ({"ca": "c", "identity": "{bookie_id}", "insecure_any_host": True}, "takes anybody's: give one"),
        ({"ca": "c", "handshake_timeout_s": 0}, "tls.handshake_timeout_s must be more than 0, not 0"),
    ],
)
def test_a_client_is_told_what_does_not_fit(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError) as error:
        TlsConfig(**given)
    assert rule in str(error.value)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"mode": "maybe"}, 'tls.mode must be one of required, offered, off, not "maybe"'),
        ({}, "tls.cert is missing"),
        ({"cert": "c", "allow": ("spark",)}, "need tls.client_ca"),
        ({"cert": "c", "roles": ("spark",)}, "need tls.client_ca"),
        ({"cert": "c", "handshakes_max": 0}, "tls.handshakes_max must be more than 0, not 0"),
    ],
)
def test_a_bookie_is_told_what_does_not_fit(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(ConfigError) as error:
        ServerTls(**given)
    assert rule in str(error.value)


def test_the_environment_gives_a_client_its_settings() -> None:
    given = {"BK_TLS_CA": "/ca", "BK_TLS_CERT": "/cert", "BK_TLS_KEY": "/key", "BK_TLS_INSECURE_ANY_HOST": "1"}
    assert TlsConfig.from_environment(given) == TlsConfig(ca="/ca", cert="/cert", key="/key", insecure_any_host=True)
    assert TlsConfig.from_environment({"BK_TLS_CA": "", "PATH": "/bin"}) is None
    with pytest.raises(ConfigError, match="BK_TLS_CA"):
        TlsConfig.from_environment({"BK_TLS_CERT": "/cert"})
    with pytest.raises(ConfigError, match="0 or 1"):
        TlsConfig.from_environment({"BK_TLS_CA": "/ca", "BK_TLS_INSECURE_ANY_HOST": "no"})
