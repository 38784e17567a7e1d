from __future__ import annotations

import pytest

from tests.boards.promql import named


@pytest.mark.parametrize(
    ("query", "names", "patterns"),
    [
        ("up == 0", {"up"}, set()),
        ('sum by (instance) (rate(a_total{x=~"b|c", y="rate(z)"}[5m]))', {"a_total"}, set()),
        ("100 * (1 - sum(free) / sum(total)) or vector(0)", {"free", "total"}, set()),
        ("histogram_quantile(0.99, sum by (le) (rate(a_bucket[$__rate_interval])))", {"a_bucket"}, set()),
        ('max({__name__=~"(x_)?y", cluster="}"}) + z', {"z"}, {"(x_)?y"}),
        ("sum by (c) (s == bool 1) == 0 and on (c) t offset 5m", {"s", "t"}, set()),
    ],
)
def test_the_metrics_of_a_query_are_found(query: str, names: set[str], patterns: set[str]) -> None:
    found = named(query)
    assert (set(found.names), set(found.patterns)) == (names, patterns)
