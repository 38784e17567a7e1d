"""X12: one rule for names, at a separator; what looks like a pattern is refused."""

from __future__ import annotations

import pytest

from bookkeeper.access import CLUSTER, Resource
from bookkeeper.errors import ConfigError


@pytest.mark.rule("X12")
@pytest.mark.parametrize(
    ("on", "covered"),
    [
        ("streams:app", {"streams:app", "streams:app/x"}),
        ("streams:/", {"streams:app", "streams:app/x", "streams:apple"}),
        ("paths:/etl", {"paths:/etl", "paths:/etl/x"}),
        ("ledgers:spiffe://example.org", {"ledgers:spiffe://example.org/spark"}),
        ("journals:nn", set()),
    ],
)
def test_a_name_covers_what_is_below_it_at_a_separator(on: str, covered: set[str]) -> None:
    resources = (
        "streams:app",
        "streams:app/x",
        "streams:apple",
        "paths:/etl",
        "paths:/etl/x",
        "paths:/etlx",
        "ledgers:spiffe://example.org/spark",
        "journals:nnx",
    )
    assert {each for each in resources if Resource.parse(on).covers(Resource.parse(each))} == covered


def test_the_cluster_covers_everything_and_nothing_covers_the_cluster() -> None:
    for text in ("streams:/", "paths:/", "ledgers:etl"):
        assert CLUSTER.covers(Resource.parse(text))
        assert not Resource.parse(text).covers(CLUSTER)


@pytest.mark.parametrize(
    "text",
    [
        *("streams:*", "streams:app*", "streams:app/", "streams:", "streams:app ", "streams:a%2Fb", "streams:a//b"),
        *("streams:../b", "streams:a\u0301", "paths:etl", "paths:/a/../b", "app", "topics:app", "cluster:x", ""),
        *("streams:" + "a" * 513, "streams:a\x00b", "streams:a?b", "streams:[ab]"),
    ],
)
def test_what_is_no_name_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"name|path|resource|streams"):
        Resource.parse(text)


@pytest.mark.parametrize("text", ["streams:app/x", "streams:/", "paths:/", "paths:/a", "ledgers:etl", "cluster"])
def test_the_text_of_a_resource_reads_back(text: str) -> None:
    assert str(Resource.parse(text)) == text
