"""Addresses that say which cluster a journal is on."""

from __future__ import annotations

import pytest

from journal_manager import JournalConfigError, parse_uri
from journal_manager.backends.bookkeeper.address import plain


@pytest.mark.parametrize(
    ("text", "name", "query"),
    [
        ("bk:a/b?digest=crc32", "a/b", {"digest": "crc32"}),
        ("bk+embedded:///data/bk?bookies=3", "edits", {"metadata": "embedded:///data/bk?bookies=3"}),
        ("bk+embedded:///a%20b", "edits", {"metadata": "embedded:///a%20b"}),
        ("bk+sqlite:///data/m.db?name=x/y", "x/y", {"metadata": "sqlite:///data/m.db"}),
        (
            "bk+zk://one:2181,two:2181/ledgers?name=x&ack_quorum=3",
            "x",
            {"metadata": "zk://one:2181,two:2181/ledgers", "ack_quorum": "3"},
        ),
    ],
)
def test_an_address_holds_the_clusters_address(text: str, name: str, query: dict[str, str]) -> None:
    uri = plain(parse_uri(text))
    assert (uri.scheme, uri.name, dict(uri.query)) == ("bk", name, query)


def test_the_cluster_is_given_once() -> None:
    with pytest.raises(JournalConfigError, match="names the cluster already"):
        plain(parse_uri("bk+zk://one/ledgers?metadata=zk://two/ledgers"))
