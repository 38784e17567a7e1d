"""What is read of autorecovery from the metadata."""

from __future__ import annotations

import asyncio

from bookkeeper.autorecovery import AutorecoveryConfig, AutorecoveryService
from bookkeeper.autorecovery.status import status_of
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.autorecovery import ClusterCheck
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import written


def test_a_cluster_without_autorecovery_says_so() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            found = await status_of(bk.metadata_store)
            assert (found.enabled, found.auditor, found.delay_s, found.marked, found.reports) == (
                True,
                None,
                None,
                [],
                [],
            )
            assert found.checks == dict.fromkeys(ClusterCheck)

    SimCluster().run(story)


def test_it_names_the_auditor_the_marks_and_every_stuck_ledger_with_its_reason() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            service = AutorecoveryService(other, "healer", AutorecoveryConfig(poll_s=1.0))
            ledger = await written(cluster, bk, 5)
            cluster.node("b3").crash()
            await asyncio.sleep(5)
            await bk.metadata_store.under_replication.mark(LedgerId(ledger), [BookieId("b3")], 1)
            await bk.metadata_store.store.create("/ledgers-py/autorecovery/odd", b"?", parents=True)
            await service.start()
            await asyncio.sleep(20)
            found = await status_of(bk.metadata_store)
            assert found.auditor == "healer" and found.marked == [ledger] and found.delay_s == 30
            assert "no bookie can take the place of b3" in found.stuck[ledger]
            healer, odd = found.reports
            assert healer.auditor and "cannot be read" in odd.auditing
            await service.stop()

    SimCluster().run(story)
