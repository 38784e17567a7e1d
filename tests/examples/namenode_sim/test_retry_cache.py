"""Requests that were done are known, up to a bound."""

from __future__ import annotations

from examples.namenode_sim.retry_cache import RetryCache


def test_a_request_is_known_by_client_and_call() -> None:
    cache = RetryCache()
    cache.note(b"a", 1, 5)
    assert cache.done(b"a", 1) == 5
    assert cache.done(b"a", 2) is None
    assert cache.done(b"b", 1) is None
    assert cache.items() == [(b"a", 1, 5)]


def test_the_oldest_request_is_forgotten_first() -> None:
    cache = RetryCache(kept=2)
    for call in (1, 2, 3):
        cache.note(b"a", call, call)
    assert [cache.done(b"a", call) for call in (1, 2, 3)] == [None, 2, 3]
    assert len(cache) == 2
