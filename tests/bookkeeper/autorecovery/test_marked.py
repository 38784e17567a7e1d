"""The list of under-replicated ledgers, with reasons."""

from __future__ import annotations

import asyncio

from bookkeeper.autorecovery import AutorecoveryConfig, AutorecoveryService
from bookkeeper.autorecovery.marked import MarkedLedger, marked_ledgers
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.under_replication import mark_path
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import written


def test_marks_are_listed_with_their_bookies_and_times_and_chosen_by_bookie() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            metadata = bk.metadata_store
            assert await marked_ledgers(metadata) == []
            marks = metadata.under_replication
            await marks.mark(LedgerId(70000), [BookieId("b1"), BookieId("b2")], 5)
            await marks.mark(LedgerId(3), [BookieId("b2")], 7)
            first, second = (
                MarkedLedger(LedgerId(3), (BookieId("b2"),), 7),
                MarkedLedger(LedgerId(70000), (BookieId("b1"), BookieId("b2")), 5),
            )
            assert await marked_ledgers(metadata) == [first, second]
            assert await marked_ledgers(metadata, "b1") == [second]
            assert await marked_ledgers(metadata, "b3") == []
            await metadata.store.create(mark_path("/ledgers", LedgerId(9)), b"?", parents=True)
            (odd,) = await marked_ledgers(metadata, "b3")
            assert odd.ledger_id == 9 and not odd.is_readable and "cannot be read" in odd.reason

    SimCluster().run(story)


def test_a_ledger_that_is_stuck_has_its_reason() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            service = AutorecoveryService(other, "healer", AutorecoveryConfig(poll_s=1.0))
            ledger = await written(cluster, bk, 5)
            cluster.node("b3").crash()
            await asyncio.sleep(5)
            await bk.metadata_store.under_replication.mark(LedgerId(ledger), [BookieId("b3")], 1)
            await service.start()
            await asyncio.sleep(20)
            (stuck,) = await marked_ledgers(bk.metadata_store, "b3")
            assert "no bookie can take the place of b3" in stuck.reason and stuck.tries >= 1
            await service.stop()

    SimCluster().run(story)
