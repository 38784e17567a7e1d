"""What the worker does by itself, on production bookies in a simulated world; see also test_service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.worker import RepairWorker
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes
from bookkeeper.replication.copying import repair_lock
from bookkeeper.replication.copying.repair_lock import lock_path
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, append, holds, until, written

QUICK = AutorecoveryConfig(poll_s=1.0, backoff_s=1.0, grace_ms=5_000, parallel=2)


def run(story: Story, bookies: int = 4, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


@asynccontextmanager
async def working(cluster: SimCluster, config: AutorecoveryConfig = QUICK) -> AsyncIterator[RepairWorker]:
    async with cluster.connect() as bk:
        metadata = bk.metadata_store
        worker = RepairWorker(bk, AutorecoveryNodes(metadata.store, metadata.paths), "worker", config)
        task = asyncio.ensure_future(worker.run())
        try:
            yield worker
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def mark(bk: BookKeeper, ledger: int, *bookies: str) -> None:
    await bk.metadata_store.under_replication.mark(LedgerId(ledger), [BookieId(each) for each in bookies], 1)


async def unmarked(bk: BookKeeper, ledger: int) -> None:
    """Wait until the ledger has no mark."""
    async with asyncio.timeout(300):
        while await bk.metadata_store.under_replication.read(LedgerId(ledger)) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


@pytest.mark.rule("A7")
def test_what_a_bookie_lacks_that_is_here_is_completed_where_it_is() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, working(cluster) as worker:
            ledger = await bk.create_ledger(password=b"pw")
            await append(cluster, ledger, 10)
            cluster.node("b3").crash()
            await append(cluster, ledger, 10)
            await ledger.close()  # leaves a mark
            cluster.node("b3").restart()
            await cluster.wait_until_up()
            await unmarked(bk, ledger.id)
            assert holds(cluster, "b3", ledger.id) == set(range(20))
            assert worker.report("worker").repaired == 1 and worker.report("worker").copied_entries >= 10

    run(story, bookies=3)


def test_the_mark_of_a_whole_or_deleted_ledger_goes() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, working(cluster) as worker:
            whole, deleted = await written(cluster, bk, 10), await written(cluster, bk, 10)
            await bk.delete_ledger(deleted)
            for ledger in (whole, deleted):
                await mark(bk, ledger, "b9")
                await unmarked(bk, ledger)
            assert worker.report("worker").repaired == 0, "there was nothing to repair"

    run(story)


@pytest.mark.rule("A2", "A8")
def test_a_ledger_that_somebody_else_repairs_is_left_to_them_until_they_end() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other, working(cluster) as worker:
            ledger = await written(cluster, bk, 10)
            store = other.metadata_store.store
            lock = lock_path("/ledgers", ledger)
            await store.create(lock, b'bookieId: "java-worker"\n', ephemeral=True, parents=True)
            await mark(bk, ledger, "b1")
            await until(lambda: worker.report("worker").stuck)
            (stuck,) = worker.report("worker").stuck
            assert stuck.reason == "java-worker repairs it now and holds its lock"
            await store.delete(lock, None)
            await unmarked(bk, ledger)

    run(story)


@pytest.mark.rule("A9")
def test_a_ledger_that_is_marked_again_while_its_lock_is_released_waits_for_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was taken a second time, and the first repair removed the record of the second, which ended in KeyError."""
    inside = most = 0

    @asynccontextmanager
    async def slowly_released(metadata: Metadata, ledger_id: LedgerId, owner: str) -> AsyncIterator[str | None]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        async with repair_lock(metadata, ledger_id, owner) as holder:
            yield holder
        await asyncio.sleep(3)
        inside -= 1

    monkeypatch.setattr("bookkeeper.autorecovery.worker.repair_lock", slowly_released)

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, working(cluster) as worker:
            ledger_id = await written(cluster, bk)
            for _ in range(3):
                await mark(bk, ledger_id, "b1")
                await unmarked(bk, ledger_id)
            await asyncio.sleep(10)
            assert most == 1 and not worker.report("worker").working

    run(story)


def test_a_worker_goes_on_when_the_metadata_store_is_back() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, working(cluster) as worker:
            ledger = await written(cluster, bk, 10)
            await until(lambda: worker._list_at)
            cluster.store.expire(worker._metadata.store)  # type: ignore[arg-type]
            await mark(bk, ledger, "b1")
            await unmarked(bk, ledger)

    run(story)


@pytest.mark.rule("A8")
def test_an_error_that_nobody_foresaw_is_a_reason_and_not_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, working(cluster) as worker:
            bad, good = await written(cluster, bk, 10), await written(cluster, bk, 10)
            marks = worker._metadata.under_replication
            read = marks.read

            async def broken(ledger_id: LedgerId) -> object:
                if ledger_id == bad:
                    raise RuntimeError("a bug")
                return await read(ledger_id)

            marks.read = broken  # type: ignore[method-assign,assignment]
            await mark(bk, bad, "b1")
            await mark(bk, good, "b1")
            await unmarked(bk, good)
            await until(lambda: worker.report("worker").stuck)
            (stuck,) = worker.report("worker").stuck
            assert (stuck.ledger, stuck.reason) == (bad, "the repair ended unexpectedly: a bug")

    run(story)
    assert any("ended unexpectedly" in each.message for each in caplog.records)


@pytest.mark.rule("A8")
def test_stuck_ledgers_are_tried_again_when_a_bookie_comes_and_not_because_somebody_looked() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, working(cluster, replace(QUICK, backoff_s=100.0)) as worker:
            ledger = await written(cluster, bk, 5)
            cluster.node("b1").crash()
            await asyncio.sleep(5)
            await mark(bk, ledger, "b1")
            await until(lambda: worker.report("worker").stuck)
            for _ in range(20):
                worker.retry_stuck()
                await asyncio.sleep(1)
            (stuck,) = worker.report("worker").stuck
            assert stuck.tries == 1
            await cluster.add_bookie("b4")
            worker.retry_stuck()
            async with asyncio.timeout(50):
                await unmarked(bk, ledger)

    run(story, bookies=3)


@pytest.mark.rule("A9")
def test_marks_of_a_bookie_that_has_come_back_go_without_a_copy() -> None:
    """What apache/bookkeeper#2766 and apache/pulsar#1886 tell: all of it was copied once more."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await written(cluster, bk, 10) for _ in range(4)]
            before = [await bk.metadata(ledger) for ledger in ledgers]
            for ledger in ledgers:
                await mark(bk, ledger, "b1")
            async with working(cluster) as worker:
                for ledger in ledgers:
                    await unmarked(bk, ledger)
                report = worker.report("worker")
            assert report.repaired == report.copied_entries == 0
            assert [await bk.metadata(ledger) for ledger in ledgers] == before

    run(story)


@pytest.mark.rule("A8")
def test_a_ledger_of_one_copy_whose_bookie_is_gone_is_told_tried_rarely_and_holds_no_other_up() -> None:
    """What apache/bookkeeper#4872 tells: it was tried without an end, and hid what could be repaired."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, working(cluster, replace(QUICK, backoff_s=100.0)) as worker:
            alone = await written(cluster, bk, 5, ensemble=1, write_quorum=1, ack_quorum=1)
            (gone,) = (await bk.metadata(alone)).bookies
            both = await written(cluster, bk, 5, ensemble=2, write_quorum=2, ack_quorum=2)
            while gone not in (await bk.metadata(both)).bookies:
                both = await written(cluster, bk, 5, ensemble=2, write_quorum=2, ack_quorum=2)
            cluster.node(gone).crash()
            await asyncio.sleep(5)
            for ledger in (alone, both):
                await mark(bk, ledger, gone)
            await unmarked(bk, both)
            await until(lambda: worker.report("worker").stuck)
            await asyncio.sleep(90)
            (stuck,) = worker.report("worker").stuck
            assert (stuck.ledger, stuck.tries) == (alone, 1) and gone in stuck.reason
            assert await bk.metadata_store.under_replication.read(alone) is not None, "nobody forgets it"
            cluster.node(gone).restart()
            await cluster.wait_until_up()
            worker.retry_stuck()
            await unmarked(bk, alone)

    run(story)
