"""Going on from metadata that were put back to an older state (M10)."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.bookie.garbage.garbage_collector import GarbageCollector
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import IllegalOperationError, MalformedFrameError, MetadataRolledBackError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.replication.losses.rollback import HELD_MAX, RANGES_MAX, accept, check_ranges, held_count, list_held
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import written

KEEP_S = 3600


def collector(cluster: SimCluster, bookie: str) -> GarbageCollector:
    return cluster.servers[bookie].parts.garbage


async def put_back(cluster: SimCluster, bk: BookKeeper, lost: int) -> list[LedgerId]:
    """Ledgers of which the metadata are lost then; sessions end, as with servers that are put back."""
    backup = cluster.store.snapshot()
    made = [await written(cluster, bk, 10, ensemble=3) for _ in range(lost)]
    await asyncio.sleep(10)
    cluster.store.restore(backup)
    await asyncio.sleep(10)
    return made


async def start_again(cluster: SimCluster) -> None:
    for name in cluster.names:
        if cluster.node(name).alive:
            cluster.node(name).crash()
    await asyncio.sleep(5)
    for name in cluster.names:
        cluster.node(name).restart()
    await cluster.wait_until_up()


@pytest.mark.rule("M10", "M6", "G1")
def test_after_an_accepted_loss_bookies_start_survivors_are_readable_and_nothing_is_collected_for_a_time() -> None:
    """There was no way out: bookies that had seen more did not start, whatever an operator knew of the loss."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            survivors = [await written(cluster, bk, 10, ensemble=3) for _ in range(3)]
            lost = await put_back(cluster, bk, 2)
            with pytest.raises(MetadataRolledBackError):
                await bk.create_ledger()
        for ledger in lost:
            for entry in range(10):
                cluster._acked.pop((ledger, entry))
            cluster._passwords.pop(ledger)
        places = {BookieId(name): cluster.servers[name].address for name in cluster.names}
        async with cluster.connect() as operator:
            held = await list_held(operator, places)
            assert (sorted(held.asked), held.away) == (["b1", "b2", "b3"], {})
            assert held.unknown == {ledger: held.unknown[ledger] for ledger in lost}
            assert all(sorted(bookies) == ["b1", "b2", "b3"] for bookies in held.unknown.values())
            first = await accept(operator, held, keep_s=KEEP_S)
            assert first > max(lost)
        await start_again(cluster)
        async with cluster.connect() as bk:
            assert [ledger async for ledger in bk.list_ledgers()] == survivors
            await cluster.check_acked()
            new = await written(cluster, bk, 10, ensemble=3)
            assert new >= first
            await bk.delete_ledger(survivors[0])
            garbage = collector(cluster, "b1")
            dropped: set[LedgerId] = set()
            for _ in range(4):
                dropped |= await garbage.one_pass()
                await asyncio.sleep(700)
            assert dropped == {survivors[0]}, "what was deleted since is no loss"
            assert garbage.kept == 2 and cluster.servers["b1"].health()["kept_though_unknown"] == 2
            await start_again(cluster)
            garbage = collector(cluster, "b1")
            dropped = set()
            for _ in range(6):
                dropped |= await garbage.one_pass()
                await asyncio.sleep(700)
            assert dropped == set(lost), "the time that had passed before the start counts"

    SimCluster(garbage_interval_s=10**6).run(story, within_s=20_000)


@pytest.mark.rule("M10", "M6")
def test_ids_that_bookies_remember_only_as_dropped_are_not_given_out_again() -> None:
    async def story(cluster: SimCluster) -> None:
        backup = cluster.store.snapshot()
        async with cluster.connect() as bk:
            for _ in range(3):
                last = await written(cluster, bk, 3, ensemble=3)
                await bk.delete_ledger(last)
            for _ in range(4):
                for name in cluster.names:
                    await collector(cluster, name).one_pass()
                await asyncio.sleep(700)
            assert not any(cluster.servers[name].engine.ledgers() for name in cluster.names)
            cluster.store.restore(backup)
            await asyncio.sleep(10)
        places = {BookieId(name): cluster.servers[name].address for name in cluster.names}
        async with cluster.connect() as operator:
            held = await list_held(operator, places)
            assert last in held.used and held.unknown == {}
            assert await accept(operator, held) > last

    SimCluster(garbage_interval_s=10**6).run(story, within_s=20_000)


@pytest.mark.rule("M10", "M6")
def test_a_bookie_that_does_not_answer_is_named_and_gone_round_only_when_told_to() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await written(cluster, bk, 10, ensemble=3)
            lost = await put_back(cluster, bk, 2)
        cluster.node("b3").crash()
        places = {BookieId(name): cluster.servers[name].address for name in ("b1", "b2")}
        async with cluster.connect() as operator:
            await asyncio.sleep(5)
            held = await list_held(operator, places)
            assert sorted(held.asked) == ["b1", "b2"]
            assert "--bookie b3=HOST:PORT" in held.away[BookieId("b3")]
            before = cluster.store.transaction
            with pytest.raises(IllegalOperationError, match=r"not every bookie has answered \(b3: "):
                await accept(operator, held)
            assert cluster.store.transaction == before, "nothing was changed"
            first = await accept(operator, held, without=frozenset({"b3"}))
            assert first > 2**32 > max(lost), "beyond what it could hold"

    SimCluster(garbage_interval_s=10**6).run(story, within_s=20_000)


@pytest.mark.rule("M10")
def test_more_ledgers_than_fit_into_a_frame_are_listed_page_by_page() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ids = [*range(1, 401, 2), 2**62, 2**63 - 1]
            for ledger_id in ids:
                async with await bk.create_ledger(
                    ensemble=1, write_quorum=1, ack_quorum=1, ledger_id=ledger_id
                ) as ledger:
                    await ledger.append(b"x")
            store, ledgers = bk.metadata_store.store, bk.metadata_store.ledgers
            for ledger_id in ids[::2]:
                await store.delete(ledgers.path(LedgerId(ledger_id)), None)
            held = await list_held(bk)
            assert held.asked == {"b1": len(ids)}
            assert list(held.unknown) == ids[::2]
            assert 2**63 - 1 in held.used

    SimCluster(bookies=1, frame_max=4096).run(story)


@pytest.mark.rule("M10")
def test_a_deleted_ledger_is_not_among_those_that_metadata_have_lost() -> None:
    """Bookies keep it for its grace, and it can be brought back: it was listed as given up."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            deleted, lost = [await written(cluster, bk, 10, ensemble=3) for _ in range(2)]
            await bk.delete_ledger(deleted)
            await bk.metadata_store.store.delete(bk.metadata_store.ledgers.path(lost), None)
            held = await list_held(bk)
            assert list(held.unknown) == [lost]
            assert deleted in held.used and lost in held.used
            for entry in range(10):
                cluster._acked.pop((lost, entry), None)
            cluster._passwords.pop(lost)

    SimCluster().run(story)


@pytest.mark.rule("X40")
def test_a_bookie_that_lists_what_it_cannot_hold_is_not_believed() -> None:
    """Else one page after another, or one range, would keep whoever asks for ever."""
    bookie = BookieId("liar")
    check_ranges(bookie, 0, [(0, 1 << 60)], 0)
    assert held_count(bookie, [(0, 9), (20, 20)]) == 11
    with pytest.raises(MalformedFrameError, match="liar lists id 3 where it was asked for those from 4 on"):
        check_ranges(bookie, 4, [(3, 3)], 1)
    with pytest.raises(MalformedFrameError, match="and goes on"):
        check_ranges(bookie, 4, [(4, 4)], RANGES_MAX)
    with pytest.raises(MalformedFrameError, match="are believed"):
        held_count(bookie, [(0, HELD_MAX)])
