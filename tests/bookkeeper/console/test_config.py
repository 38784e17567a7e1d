"""Which settings a console takes."""

from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.console.config import ACTIONS, ConsoleConfig
from bookkeeper.errors import ConfigError


def test_by_default_it_is_on_loopback_and_changes_nothing() -> None:
    config = ConsoleConfig()
    assert config.listen == "127.0.0.1:9880" and config.token_file is None
    assert not any(config.allows(action) for action in ACTIONS)


def test_actions_are_on_by_their_word_or_all_at_once() -> None:
    one = ConsoleConfig(token_file="tokens", actions=("repair",))
    assert [action for action in ACTIONS if one.allows(action)] == ["repair"]
    assert all(ConsoleConfig(token_file="tokens", actions=("all",)).allows(action) for action in ACTIONS)


@pytest.mark.rule("X67")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"listen": "nowhere"}, "must be HOST:PORT"),
        ({"listen": "0.0.0.0:9880"}, "sent in clear"),
        ({"listen": "0.0.0.0:9880", "token_file": "tokens"}, "sent in clear"),
        ({"listen": "0.0.0.0:9880", "tls_cert": "cert"}, "give --token-file"),
        ({"actions": ("repair",)}, "--actions needs --token-file"),
        ({"actions": ("reboot",), "token_file": "tokens"}, "there is no action reboot"),
        ({"tls_key": "key"}, "needs --listen-tls-cert"),
        ({"refresh_s": 0}, "refresh_s"),
    ],
)
def test_what_would_show_or_change_too_much_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ConsoleConfig(**options)


def test_beyond_loopback_it_serves_with_tls_and_tokens() -> None:
    config = ConsoleConfig(listen="0.0.0.0:9880", tls_cert="cert", token_file="tokens")
    assert config.listen == "0.0.0.0:9880"
