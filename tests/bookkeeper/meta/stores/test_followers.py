"""Followers of stores that number their transactions; what every follower promises is in the contract of stores."""

from __future__ import annotations

from bookkeeper.meta.stores.memory import MemoryCluster


async def test_each_write_is_named_once_and_one_question_is_asked() -> None:
    cluster = MemoryCluster()
    store = cluster.connect()
    follower = store.follow_values()
    for path in ("/a", "/b"):
        await store.create(path)
    assert await follower.changed() is None
    assert await follower.changed() == []
    await store.set("/a", b"1", None)
    await store.set("/a", b"2", None)
    assert await follower.changed() == ["/a"] and await follower.changed() == []
    await store.delete("/b", None)
    assert "/b" not in (await follower.changed() or ())


async def test_in_an_older_state_anything_may_have_changed() -> None:
    cluster = MemoryCluster()
    store = cluster.connect()
    await store.create("/a", b"old")
    backup = cluster.snapshot()
    await store.set("/a", b"new", None)
    follower = store.follow_values()
    await follower.changed()
    cluster.restore(backup)
    assert await follower.changed() is None
