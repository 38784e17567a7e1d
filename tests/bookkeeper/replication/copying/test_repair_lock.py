"""Locks of repairs."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.ids import LedgerId
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.real import system_seams
from bookkeeper.replication.copying import repair_lock
from bookkeeper.replication.copying.repair_lock import holds_lock, lock_path

FIVE = LedgerId(5)


async def two_sessions() -> tuple[Metadata, Metadata]:
    cluster, seams = MemoryCluster(), system_seams()
    await init_cluster_in(cluster.connect(), seams)
    return await Metadata.over(cluster.connect(), seams), await Metadata.over(cluster.connect(), seams)


def test_the_lock_lies_where_apache_bookkeeper_looks() -> None:
    assert lock_path("/ledgers", FIVE) == "/ledgers/underreplication/locks/urL0000000005"
    assert lock_path("/x", LedgerId(1234567890123)) == "/x/underreplication/locks/urL1234567890123"


@pytest.mark.rule("Z2")
async def test_one_repairs_at_a_time_and_the_other_is_told_who() -> None:
    metadata, other = await two_sessions()
    async with repair_lock(metadata, FIVE, "me") as holder:
        assert holder is None
        async with repair_lock(other, FIVE, "you") as holder:
            assert holder == "me"
        assert (await metadata.store.get(lock_path("/ledgers", FIVE))).value == b'bookieId: "me"\n'
        async with repair_lock(other, LedgerId(6), "you") as holder:
            assert holder is None
    async with repair_lock(other, FIVE, "you") as holder:
        assert holder is None
    assert await metadata.store.children("/ledgers/underreplication/locks") == []


async def test_the_lock_of_a_session_that_died_is_free() -> None:
    metadata, other = await two_sessions()
    lock = repair_lock(metadata, FIVE, "me")
    await lock.__aenter__()
    await metadata.close()
    await lock.__aexit__(None, None, None)  # no error of its own in place of that which ended the work
    async with repair_lock(other, FIVE, "you") as holder:
        assert holder is None


@pytest.mark.rule("A10")
async def test_the_lock_belongs_to_a_repair_not_to_the_session_that_others_share() -> None:
    metadata, _ = await two_sessions()
    path = lock_path("/ledgers", FIVE)
    async with repair_lock(metadata, FIVE, "first") as holder:
        assert holder is None
        async with repair_lock(metadata, FIVE, "second") as holder:
            assert holder == "another repair of this client (first)"
        assert await holds_lock(metadata, FIVE), "the second, which did not get it, let go of the first one's lock"
        async with repair_lock(metadata, LedgerId(6), "second") as holder:
            assert holder is None
    assert await metadata.store.exists(path) is None
    async with repair_lock(metadata, FIVE, "second") as holder:
        assert holder is None


@pytest.mark.rule("A10")
async def test_two_that_begin_at_once_do_not_both_get_the_lock() -> None:
    metadata, _ = await two_sessions()
    inside: list[str] = []

    async def repair(owner: str) -> str | None:
        async with repair_lock(metadata, FIVE, owner) as holder:
            if holder is None:
                inside.append(owner)
                assert len(inside) == 1
                for _ in range(5):
                    await asyncio.sleep(0)
                assert await holds_lock(metadata, FIVE)
                inside.remove(owner)
            return holder

    found = await asyncio.gather(repair("a"), repair("b"), repair("c"))
    assert list(found) == [None, *["another repair of this client (a)"] * 2]


@pytest.mark.rule("A10")
async def test_a_lock_that_its_repair_could_not_take_or_leave_blocks_no_later_one() -> None:
    """Its reply was lost, or the store was away at its end: the session still owns the node, and nobody here does."""
    metadata, other = await two_sessions()
    path = lock_path("/ledgers", FIVE)
    await metadata.store.create(path, b'bookieId: "before"\n', ephemeral=True, parents=True)
    async with repair_lock(other, FIVE, "you") as holder:
        assert holder == "before"
    with pytest.raises(ZeroDivisionError):
        async with repair_lock(metadata, FIVE, "me") as holder:
            assert holder is None
            raise ZeroDivisionError
    async with repair_lock(other, FIVE, "you") as holder:
        assert holder is None
    assert metadata.repairs == other.repairs == {}


@pytest.mark.rule("A10")
async def test_after_the_session_was_lost_the_repair_has_lost_its_lock_and_nobody_here_takes_it() -> None:
    cluster, seams = MemoryCluster(), system_seams()
    await init_cluster_in(cluster.connect(), seams)
    store = cluster.connect()
    metadata = await Metadata.over(store, seams)
    async with repair_lock(metadata, FIVE, "first"):
        cluster.expire(store)
        async with repair_lock(metadata, FIVE, "second") as holder:
            assert holder == "another repair of this client (first)"
        assert not await holds_lock(metadata, FIVE)
