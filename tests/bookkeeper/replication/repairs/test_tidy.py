"""Which marks may go."""

from __future__ import annotations

import pytest

from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.records.under_replication import UnderReplication
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.copying.repair_lock import lock_path
from bookkeeper.replication.inspection.check import incomplete_copies
from bookkeeper.replication.repairs import ledger_repair
from bookkeeper.replication.repairs.tidy import tidy_mark, tidy_marks
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import append, holds, written


async def marked(cluster: SimCluster, store: object, ledger: int, bookie: str) -> None:
    marks = UnderReplication(store, Paths("/ledgers"))  # type: ignore[arg-type]
    await marks.mark(LedgerId(ledger), [BookieId(bookie)], 1)


@pytest.mark.rule("A7", "W14")
def test_what_a_bookie_lacks_is_completed_where_it_is_and_then_the_mark_goes() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw")
            await append(cluster, ledger, 10)
            cluster.node("b3").crash()
            await append(cluster, ledger, 10)
            await ledger.close()
            context = RepairContext(services=bk.services)
            found = await bk.metadata_store.under_replication.read(ledger.id)
            assert found is not None and found.bookies == ("b3",)
            before = await tidy_mark(context, found)
            assert not before.removed and "not known" in before.reason
            cluster.node("b3").restart()
            await cluster.wait_until_up()
            bk.services.pool.forgive(BookieId("b3"))
            assert (await tidy_mark(context, found)).removed
            assert holds(cluster, "b3", ledger.id) == set(range(20))
            assert await bk.metadata_store.under_replication.read(ledger.id) is None

    SimCluster().run(story)


@pytest.mark.rule("A7")
def test_a_mark_stays_when_the_metadata_change_while_the_ledger_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 5)
            await marked(cluster, bk.metadata_store.store, ledger, "b8")
            found = await bk.metadata_store.under_replication.read(ledger)
            assert found is not None

            async def meanwhile(*args: object) -> object:
                lacking = await incomplete_copies(*args)  # type: ignore[arg-type]
                ledgers = bk.metadata_store.ledgers
                stored = await ledgers.read(ledger)
                await ledgers.write(ledger, stored.value.swap_bookie(0, BookieId("b1"), BookieId("b9")), stored.version)
                return lacking

            monkeypatch.setattr(ledger_repair, "incomplete_copies", meanwhile)
            done = await tidy_mark(RepairContext(services=bk.services), found)
            assert not done.removed and "changed while" in done.reason
            assert await bk.metadata_store.under_replication.read(ledger) == found

    SimCluster().run(story)


@pytest.mark.rule("A8")
def test_only_what_concerns_us_is_looked_at_and_a_ledger_that_somebody_repairs_is_left_to_them() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledgers = [await written(cluster, bk, 3) for _ in range(4)]
            store = bk.metadata_store.store
            for ledger, bookie in zip(ledgers, ("b1", "b2", "b1", "b2"), strict=True):
                await marked(cluster, store, ledger, bookie)
            await other.metadata_store.store.create(
                lock_path("/ledgers", ledgers[2]), b'bookieId: "worker"\n', ephemeral=True, parents=True
            )
            done = await tidy_marks(RepairContext(services=bk.services), [BookieId("b1")], {ledgers[3]}, "me")
            assert [(each.ledger_id, each.removed) for each in done] == [
                (ledgers[0], True),
                (ledgers[2], False),
                (ledgers[3], True),
            ]
            assert done[1].reason == "worker repairs it now and holds its lock"
            assert await bk.metadata_store.under_replication.read(ledgers[1]) is not None

    SimCluster().run(story)
