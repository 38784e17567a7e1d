"""What to say where a pattern of names matches no stream."""

from __future__ import annotations

from spark_wal.data_source.name_pattern import no_match

NAMES = ["app/clicks", "app/orders", "app/pays", "app/users", "eu/orders", "logs"]


def test_names_that_begin_almost_so_are_offered() -> None:
    """A typing error, another case, and a slash too many."""
    assert no_match("ap/*", NAMES[4:]) == (
        "streams ap/* matches no stream; nothing was read. The cluster has 2 streams: eu/orders, logs"
    )
    offered = "Did you mean app/clicks, app/orders, app/pays …?"
    for pattern in ("apps/*", "App/*", "aap/*"):
        assert no_match(pattern, NAMES).endswith(offered), pattern
    assert no_match("logs/*", NAMES).endswith("Did you mean logs?")


def test_otherwise_some_names_are_shown_and_how_many_there_are() -> None:
    assert no_match("plants/*", NAMES).endswith("The cluster has 6 streams: app/clicks, app/orders, app/pays …")
    assert no_match("plants/*", NAMES[:1]).endswith("The cluster has 1 stream: app/clicks")


def test_a_cluster_without_streams_may_be_another_than_was_meant() -> None:
    assert "The cluster has no stream at all" in no_match("*", [])
