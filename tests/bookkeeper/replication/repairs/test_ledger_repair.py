"""One ledger made whole; the stories with marks and workers are in tests/bookkeeper/autorecovery."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.inspection.check import incomplete_copies
from bookkeeper.replication.repairs import GracePeriods, LedgerRepair, repair_ledger
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, append, record_of, written


def run(story: Story, bookies: int = 5, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


def test_a_grace_period_begins_once_and_anew_with_every_fragment() -> None:
    graces, one = GracePeriods(30.0), LedgerId(1)
    assert graces.end(one, EntryId(0), 100.0) == 130.0
    assert graces.end(one, EntryId(0), 120.0) == 130.0
    assert graces.end(one, EntryId(10), 120.0) == 150.0
    graces.forget(one)
    assert graces.end(one, EntryId(10), 200.0) == 230.0 and len(graces.since) == 1


@pytest.mark.rule("A1", "A5")
def test_the_copies_of_two_bookies_that_are_gone_are_made_again_elsewhere() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 40, ensemble=3, write_quorum=3, ack_quorum=2)
            victims = sorted((await bk.metadata(ledger)).bookies)[:2]
            for name in victims:
                cluster.node(name).crash()
            await asyncio.sleep(5)
            done = await repair_ledger(RepairContext(services=bk.services), ledger, GracePeriods(0.0))
            assert done.whole and sorted(copied.entries for copied in done.copied) == [40, 40], done.reason
            record = await record_of(bk, ledger)
            assert not set(victims) & record.metadata.bookies
            assert await incomplete_copies(RepairContext(services=bk.services), record) == []
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A3")
def test_an_open_ledger_is_left_to_its_writer_while_the_grace_period_lasts() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw")
            await append(cluster, ledger, 10)
            victim = ledger.metadata.last_fragment.ensemble[0]
            await ledger.abandon()
            cluster.node(victim).crash()
            await asyncio.sleep(5)
            context, graces = RepairContext(services=bk.services), GracePeriods(20.0)
            now = asyncio.get_running_loop().time()
            waits = await repair_ledger(context, LedgerId(ledger.id), graces)
            assert not waits.whole and not waits.recovered and waits.until is not None and waits.until >= now + 20
            assert "is recovered if its writer has not moved on within 20 s" in waits.reason
            await asyncio.sleep(20)
            done = await repair_ledger(context, LedgerId(ledger.id), graces)
            assert done.whole and done.recovered and graces.since == {}
            assert victim not in (await bk.metadata(ledger.id)).bookies
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A4")
def test_a_bookie_that_is_registered_and_does_not_answer_is_not_replaced() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 10)
            victim = sorted((await bk.metadata(ledger)).bookies)[0]
            cluster.world.network.cut("client", victim)
            done = await repair_ledger(RepairContext(services=bk.services), ledger, GracePeriods(0.0))
            assert not done.whole and done.copied == [] and "not known" in done.reason
            assert victim in (await bk.metadata(ledger)).bookies

    run(story)


def test_a_ledger_that_was_deleted_is_whole() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            done = await repair_ledger(RepairContext(services=bk.services), LedgerId(99), GracePeriods(0.0))
            assert done == LedgerRepair(LedgerId(99), whole=True, deleted=True)

    run(story)


@pytest.mark.rule("A7")
def test_all_of_what_a_named_bookie_holds_is_read_back_before_its_mark_goes() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 40)
            victim = sorted((await bk.metadata(ledger)).bookies)[0]
            marks = bk.metadata_store.under_replication
            await marks.mark(ledger, [BookieId(victim)], 1)
            mark = await marks.read(ledger)
            asked: list[str] = []
            done = await repair_ledger(
                RepairContext(services=bk.services), ledger, GracePeriods(0.0), mark, report=asked.append
            )
            assert done.whole and done.copied == []
            assert asked == ["asks the bookies what they hold", f"completes entries 0..39 on {victim}"]

    run(story)
