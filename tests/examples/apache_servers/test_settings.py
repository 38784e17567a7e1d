from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from examples.apache_servers.settings import bookie_settings, client_settings, java_uri, write_settings


@pytest.mark.parametrize(
    ("ours", "javas"),
    [
        ("zk://a:1,b:2/ledgers", "zk+null://a:1;b:2/ledgers"),
        ("zk+longhierarchical://a:1;b:2/x", "zk+longhierarchical://a:1;b:2/x"),
    ],
)
def test_an_address_of_ours_becomes_one_of_javas(ours: str, javas: str) -> None:
    assert java_uri(ours) == javas


@pytest.mark.parametrize("uri", ["sqlite:///f", "memory:x", "zk:/ledgers"])
def test_what_java_cannot_reach_is_refused(uri: str) -> None:
    with pytest.raises(ConfigError, match="ZooKeeper only"):
        java_uri(uri)


def test_what_is_asked_for_wins(tmp_path: Path) -> None:
    settings = bookie_settings(tmp_path, "zk://a:1/ledgers", 7, {"zkTimeout": 1, "bookieId": "b"})
    assert (settings["zkTimeout"], settings["bookieId"], settings["bookiePort"]) == (1, "b", 7)
    assert client_settings("zk://a:1/ledgers", {"zkTimeout": 2})["zkTimeout"] == 2


def test_a_file_is_one_setting_a_line(tmp_path: Path) -> None:
    path = write_settings(tmp_path / "x" / "conf", {"a": True, "b": 3, "c": "d\\e"})
    assert path.read_text() == "a=true\nb=3\nc=d\\\\e\n"
    with pytest.raises(ConfigError, match="one line"):
        write_settings(tmp_path / "conf", {"a": "b\nc=d"})
