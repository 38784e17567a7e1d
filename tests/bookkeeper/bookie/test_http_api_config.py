"""Settings of the HTTP API."""

from __future__ import annotations

import pytest

from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.http_api_config import HttpApiConfig, http_api_options
from bookkeeper.errors import ConfigError

LISTEN = "127.0.0.1:8080"


def test_it_is_off_by_default() -> None:
    config = config_from({"metadata_uri": "sqlite:///m", "directory": "/b"}).http_api
    assert config == HttpApiConfig() and not config.listen
    assert not config.allows("delete-ledger")


def test_actions_are_named_one_by_one_or_all_at_once() -> None:
    some = HttpApiConfig(listen=LISTEN, token_file="/t", actions=("compaction",))
    assert some.allows("compaction") and not some.allows("delete-ledger")
    assert HttpApiConfig(listen=LISTEN, token_file="/t", actions=("all",)).allows("delete-ledger")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"token_file": "/t"}, "needs listen"),
        ({"actions": ("all",)}, "needs listen"),
        ({"listen": LISTEN}, "bk gateway token NAME --token-file FILE"),
        ({"listen": "8080", "token_file": "/t"}, "HOST:PORT"),
        ({"listen": "0.0.0.0:8080", "token_file": "/t"}, "tokens would be sent in clear"),
        ({"listen": "bookie.example:8080", "token_file": "/t"}, "give it a certificate"),
        ({"listen": LISTEN, "token_file": "/t", "tls_key": "/k"}, "needs tls_cert"),
        ({"tls_cert": "/c"}, "needs listen"),
        (
            {"listen": LISTEN, "token_file": "/t", "actions": ("delete",)},
            "there is no action delete; there are",
        ),
    ],
)
def test_what_cannot_be_served_safely_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        HttpApiConfig(**options)  # type: ignore[arg-type]


def test_with_a_certificate_it_may_be_served_to_other_hosts() -> None:
    assert HttpApiConfig(listen="0.0.0.0:8080", token_file="/t", tls_cert="/c").listen == "0.0.0.0:8080"


def test_options_of_a_command_line_make_the_table() -> None:
    assert http_api_options(None, None, None) == {}
    assert http_api_options(LISTEN, "/t", "compaction, read-only") == {
        "listen": LISTEN,
        "token_file": "/t",
        "actions": ["compaction", "read-only"],
    }
