"""The list of under-replicated ledgers, and what writers put into it."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.records.under_replication import UnderReplication, decode_mark, encode_mark, mark_path
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.real import system_seams
from tests.bookkeeper.client.scripted import ScriptedCluster

FIVE = LedgerId(5)
B1, B2 = BookieId("b1"), BookieId("b2")


async def two_sessions() -> tuple[Metadata, Metadata]:
    cluster, seams = MemoryCluster(), system_seams()
    await init_cluster_in(cluster.connect(), seams)
    return await Metadata.over(cluster.connect(), seams), await Metadata.over(cluster.connect(), seams)


@pytest.mark.parametrize(
    ("ledger_id", "path"),
    [
        (5, "/0000/0000/0000/0005/urL0000000005"),
        (123456789, "/0000/0000/075b/cd15/urL0123456789"),
        (1234567890123, "/0000/011f/71fb/04cb/urL1234567890123"),
    ],
)
def test_the_mark_lies_where_apache_bookkeeper_looks(ledger_id: int, path: str) -> None:
    assert mark_path("/ledgers", LedgerId(ledger_id)) == f"/ledgers/underreplication/ledgers{path}"


def test_the_text_of_a_mark() -> None:
    text = encode_mark([BookieId("192.0.2.1:3181"), BookieId("b2")], 1700000000000)
    assert text == b'replica: "192.0.2.1:3181"\nreplica: "b2"\nctime: 1700000000000\n'
    assert decode_mark("a mark", text).replica == ["192.0.2.1:3181", "b2"]


@pytest.mark.rule("W14")
async def test_a_second_mark_adds_to_the_first_and_a_repeated_one_is_written() -> None:
    store = MemoryCluster().connect()
    marks, path = UnderReplication(store, Paths("/ledgers")), mark_path("/ledgers", FIVE)
    await marks.mark(FIVE, [B1], 1)
    await marks.mark(FIVE, [B1], 2)
    found = await store.get(path)
    assert found.value == b'replica: "b1"\nctime: 2\n' and found.version == 1
    await marks.mark(FIVE, [B2, B1], 3)
    found = await store.get(path)
    assert found.value == b'replica: "b1"\nreplica: "b2"\nctime: 3\n' and found.version == 2


async def test_marks_are_listed_read_and_removed_with_the_parents_left_empty() -> None:
    metadata, _ = await two_sessions()
    marks = metadata.under_replication
    assert [i async for i in marks.ledgers()] == [] and await marks.read(FIVE) is None
    for ledger in (5, 6, 70000):
        await metadata.under_replication.mark(LedgerId(ledger), [B1, B2], 1)
    assert [i async for i in metadata.under_replication.ledgers()] == [5, 6, 70000]
    found = await metadata.under_replication.read(FIVE)
    assert found is not None and found.bookies == ("b1", "b2")
    assert await metadata.under_replication.remove(found) and await metadata.under_replication.remove(found)
    assert [i async for i in metadata.under_replication.ledgers()] == [6, 70000]
    assert await metadata.store.exists(mark_path("/ledgers", LedgerId(6))) is not None
    assert await metadata.store.exists(mark_path("/ledgers", FIVE).rpartition("/")[0]) is None


@pytest.mark.rule("A7")
async def test_a_mark_that_was_written_again_since_it_was_read_stays() -> None:
    metadata, other = await two_sessions()
    await metadata.under_replication.mark(FIVE, [B1], 1)
    seen = await metadata.under_replication.read(FIVE)
    assert seen is not None
    await other.under_replication.mark(FIVE, [B2], 2)
    assert not await metadata.under_replication.remove(seen)
    left = await metadata.under_replication.read(FIVE)
    assert left is not None and left.bookies == ("b1", "b2")


@pytest.mark.rule("A7")
async def test_a_mark_for_the_same_bookie_that_was_renewed_since_it_was_read_stays() -> None:
    """Cause: a mark that named the bookie already was not written, so the repair that had looked before removed it."""
    metadata, other = await two_sessions()
    await metadata.under_replication.mark(FIVE, [B1], 1)
    seen = await metadata.under_replication.read(FIVE)
    assert seen is not None
    await other.under_replication.mark(FIVE, [B1], 2)
    assert not await metadata.under_replication.remove(seen)
    left = await metadata.under_replication.read(FIVE)
    assert left is not None and left.bookies == ("b1",) and left.since_ms == 2
    assert await metadata.under_replication.remove(left)


@pytest.mark.rule("A7")
async def test_a_mark_that_was_removed_and_made_anew_since_it_was_read_stays() -> None:
    """Cause: the versions of a value that is made anew begin again."""
    metadata, other = await two_sessions()
    await metadata.under_replication.mark(FIVE, [B1], 1)
    seen = await metadata.under_replication.read(FIVE)
    assert seen is not None
    assert await other.under_replication.remove(seen)
    await other.under_replication.mark(FIVE, [B1], 2)
    assert not await metadata.under_replication.remove(seen)
    assert await metadata.under_replication.read(FIVE) is not None


@pytest.mark.rule("W14")
@pytest.mark.parametrize("store_away", [False, True])
def test_what_a_returned_bookie_missed_is_marked_at_once_lest_the_writer_dies(store_away: bool) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"three copies")
            cluster.world.node("b3").crash(power=False)
            await ledger.append(b"two copies")
            cluster.world.node("b3").restart()
            await asyncio.sleep(5)
            assert ledger.failed_bookies == ()
            store, path = bk.metadata_store.store, mark_path(bk.metadata_store.paths.root, ledger.id)
            assert decode_mark(path, (await store.get(path)).value).replica == ["b3"]
            if store_away:  # a mark that cannot be written stops nobody
                cluster.world.node("b2").crash(power=False)
                await ledger.append(b"x")
                cluster.world.node("b2").restart()
                await asyncio.sleep(0.01)
                cluster.store.begin_outage()
                await asyncio.sleep(5)
                await ledger.append(b"x")
                cluster.store.end_outage()
                await asyncio.sleep(5)
                await ledger.close()
                assert set(decode_mark(path, (await store.get(path)).value).replica) == {"b2", "b3"}
            else:
                await ledger.abandon()

    ScriptedCluster().run(story)
