"""Settings with their sources."""

from __future__ import annotations

from typing import Any

from bookkeeper.admin.config.effective_settings import effective_settings
from bookkeeper.bookie.config import config_from


def sources(given: dict[str, Any], in_file: dict[str, Any], variables: dict[str, str] | None = None) -> dict[str, Any]:
    made = config_from({**in_file, **given})
    found = effective_settings(made, given=given, variables=variables or {}, in_file=in_file, file="bk.toml")
    assert len({each.name for each in found}) == len(found)
    return {each.name: (each.value, each.source) for each in found}


def test_each_setting_says_where_it_comes_from() -> None:
    found = sources(
        {"directory": "/d", "metadata_uri": "sqlite:///m.db"},
        {"directory": "/other", "read_only": True, "storage": {"reserve_bytes": 7}},
        {"metadata_uri": "BK_METADATA"},
    )
    assert found["directory"] == ("/d", "command line")
    assert found["metadata_uri"] == ("sqlite:///m.db", "BK_METADATA")
    assert found["read_only"] == (True, "bk.toml")
    assert found["storage.reserve_bytes"] == (7, "bk.toml")
    assert found["storage.ledger_dir"] == ("/d/ledgers", "default")
    assert found["frame_max"][1] == "default"


def test_a_table_of_the_command_line_replaces_the_file_s() -> None:
    base = {"directory": "/d", "metadata_uri": "sqlite:///m.db", "tls": {"cert": "/a", "handshakes_max": 9}}
    found = sources({"tls": {"cert": "/b"}}, base)
    assert found["tls.cert"] == ("/b", "command line")
    assert found["tls.handshakes_max"] == (256, "default")


def test_secrets_are_not_shown() -> None:
    base = {
        "directory": "/d",
        "metadata_uri": "sqlite:///m.db",
        "tls": {"cert": "/a"},
        "auth": {"provider": "token", "options": {"file": "/etc/keys", "secret": "hush"}},
    }
    value, source = sources({}, base)["auth.options"]
    assert source == "bk.toml"
    assert "hush" not in str(value) and "/etc/keys" not in str(value)
