"""What a writer leaves for those who re-replicate."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.client.write.under_replication import MissingCopies, encode_mark, mark, mark_path, marked_bookies
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.stores.memory import MemoryCluster
from tests.bookkeeper.client.scripted import ScriptedCluster


def missing(*bookies: str) -> MissingCopies:
    found = MissingCopies()
    for bookie in bookies:
        found.note(BookieId(bookie), 3, 9)
    return found


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
    assert marked_bookies(text) == ["192.0.2.1:3181", "b2"]


def test_ranges_are_noted_once_and_told_in_words() -> None:
    found = missing("b1")
    found.note(BookieId("b1"), 3, 9)
    found.note(BookieId("b1"), 12, 12)
    assert str(found) == "b1 lacks its share of 3..9, 12..12"
    assert found and not MissingCopies()


@pytest.mark.rule("W14")
async def test_a_second_mark_adds_to_the_first_and_a_repeated_one_writes_nothing() -> None:
    store = MemoryCluster().connect()
    path = mark_path("/ledgers", LedgerId(5))
    await mark(store, "/ledgers", LedgerId(5), missing("b1"), 1)
    await mark(store, "/ledgers", LedgerId(5), missing("b1"), 2)
    assert (await store.get(path)).version == 0
    await mark(store, "/ledgers", LedgerId(5), missing("b2", "b1"), 3)
    found = await store.get(path)
    assert found.value == b'replica: "b1"\nreplica: "b2"\nctime: 3\n' and found.version == 1


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
            assert marked_bookies((await store.get(path)).value) == ["b3"]
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
                assert set(marked_bookies((await store.get(path)).value)) == {"b2", "b3"}
            else:
                await ledger.abandon()

    ScriptedCluster().run(story)
