"""One look at a cluster."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.autorecovery.cluster_status import ClusterObserver, LedgerHealth, judge, next_reading_s
from bookkeeper.ids import BookieId
from bookkeeper.ledger import LedgerMetadata, LedgerState, QuorumSpec
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, written


def run(story: Story, bookies: int = 4, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


def ensemble(*numbers: int) -> list[BookieId]:
    return [BookieId(f"b{number}") for number in numbers]


STRIPED = LedgerMetadata.create(QuorumSpec(ensemble_size=3, write_quorum=2, ack_quorum=2), ensemble(1, 2, 3))


@pytest.mark.parametrize(
    ("metadata", "up", "health"),
    [
        (STRIPED, ensemble(1, 2, 3), LedgerHealth.WELL),
        (STRIPED, ensemble(1, 2), LedgerHealth.SHORT),
        (STRIPED, ensemble(1), LedgerHealth.LOST),
        (STRIPED.close(9, 1), ensemble(1, 2), LedgerHealth.SHORT),
        (STRIPED.close(9, 1), ensemble(3), LedgerHealth.LOST),
        (STRIPED.close(0, 1), ensemble(1, 2), LedgerHealth.WELL),
        (STRIPED.close(0, 1), ensemble(1), LedgerHealth.SHORT),
        (STRIPED.close(0, 1), ensemble(3), LedgerHealth.LOST),
        (STRIPED.close(-1, 0), [], LedgerHealth.WELL),
        (STRIPED.change_ensemble(5, ensemble(1, 2, 4)), ensemble(1, 2, 4), LedgerHealth.SHORT),
        (STRIPED.change_ensemble(5, ensemble(1, 2, 4)), ensemble(1, 2, 3), LedgerHealth.SHORT),
    ],
)
def test_a_ledger_is_judged_by_the_bookies_of_its_entries(
    metadata: LedgerMetadata, up: list[BookieId], health: LedgerHealth
) -> None:
    assert judge(metadata, set(up)) is health


def test_a_cluster_is_well_until_a_bookie_is_gone_and_its_ledgers_are_short_then() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await written(cluster, bk, 10) for _ in range(5)]
            observer = ClusterObserver(bk)
            well = await observer.observe()
            assert well.is_well and well.ledgers.count == 5 and well.ledgers.by_state == {LedgerState.CLOSED: 5}
            assert [(each.bookie, each.state) for each in well.bookies] == [(f"b{n}", "writable") for n in range(1, 5)]
            assert all(each.free is not None and not each.problem and each.answered_s for each in well.bookies)
            assert well.ledgers.size == sum([(await bk.metadata(ledger)).length for ledger in ledgers])
            cluster.node("b2").crash()
            await asyncio.sleep(5)
            naming = [ledger for ledger in ledgers if "b2" in (await bk.metadata(ledger)).bookies]
            found = await observer.observe()
            assert found.bookies[1].state == "absent" and found.short == naming and not found.is_well
            assert not found.lost and not found.stuck
            for name in ("b1", "b3", "b4"):
                cluster.node(name).crash()
            await asyncio.sleep(5)
            found = await observer.observe()
            assert found.lost == ledgers and found.short == []

    run(story)


def test_marks_and_ledgers_that_cannot_be_read_count() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            first, second = [await written(cluster, bk, 3) for _ in range(2)]
            await bk.metadata_store.under_replication.mark(first, ensemble(1), 1)
            observer = ClusterObserver(bk)
            found = await observer.observe()
            assert found.short == [first] and not found.is_well
            store = bk.metadata_store
            await store.store.set(store.ledgers.path(second), b"nonsense", None)
            assert (await observer.observe()).lost == [], "ledgers are not read again at once"
            await asyncio.sleep(31)
            found = await observer.observe()
            assert found.lost == [second] and found.ledgers.unreadable[second]

    run(story)


def test_a_bookie_that_does_not_answer_says_why_not() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            cluster.world.network.cut("client", "b2")
            found = await ClusterObserver(bk).observe()
            assert found.bookies[1].free is None and found.bookies[1].problem
            assert found.silent == ["b2"] and not found.is_well and not found.short

    run(story)


@pytest.mark.parametrize(("took_s", "again_s"), [(0.01, 30.0), (3.0, 30.0), (12.0, 120.0)])
def test_ledgers_are_read_for_a_tenth_of_the_time_at_most(took_s: float, again_s: float) -> None:
    assert next_reading_s(took_s) == again_s
