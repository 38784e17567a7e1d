"""Addresses that say which cluster a journal is on."""

from __future__ import annotations

import pytest

from bookkeeper.meta.service_uri import parse
from journal_manager import JournalConfigError, parse_uri
from journal_manager.backends.bookkeeper.address import plain


@pytest.mark.parametrize(
    ("text", "name", "query"),
    [
        ("bk:a/b?digest=crc32", "a/b", {"digest": "crc32"}),
        ("bk+embedded:///data/bk?bookies=3", "edits", {"metadata": "embedded:///data/bk?bookies=3"}),
        ("bk+embedded:///a%20b", "edits", {"metadata": "embedded:///a%20b"}),
        ("bk+sqlite:///data/m.db?name=x/y", "x/y", {"metadata": "sqlite:///data/m.db"}),
        ("bk+sqlite:///a%2520b", "edits", {"metadata": "sqlite:///a%2520b"}),
        ("bk+sqlite:///q%3Fx", "edits", {"metadata": "sqlite:///q%3Fx"}),
        ("bk+zk://h:1/a%20b", "edits", {"metadata": "zk://h:1/a%20b"}),
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


@pytest.mark.parametrize("address", ["sqlite:///a%20b", "sqlite:///a%2520b", "sqlite:///q%3Fx", "zk://h:1/a%20b"])
def test_a_cluster_is_the_same_one_behind_the_prefix_as_without(address: str) -> None:
    """The cause: what stood behind ``bk+`` was decoded, and what stood alone was not: one address, two files."""
    behind = str(plain(parse_uri(f"bk+{address}")).query["metadata"])
    assert parse(behind) == parse(address)


def test_an_address_is_told_as_it_has_to_be_given() -> None:
    for text in ("file:///a%2520b", "file:///q%3Fx", "file:///a b", "bk:a%25"):
        assert parse_uri(str(parse_uri(text))) == parse_uri(text)


def test_the_cluster_is_given_once() -> None:
    with pytest.raises(JournalConfigError, match="names the cluster already"):
        plain(parse_uri("bk+zk://one/ledgers?metadata=zk://two/ledgers"))
