"""What the auditor marks, on production bookies in a simulated world."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bookkeeper.autorecovery.auditor import Auditor
from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes, ClusterCheck
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, append, until, written

QUICK = AutorecoveryConfig(lost_bookie_delay_s=2, poll_s=1.0, check_ledgers_per_s=0)


def run(story: Story, bookies: int = 4, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


def records_of(cluster_metadata: object) -> AutorecoveryNodes:
    return AutorecoveryNodes(cluster_metadata.store, cluster_metadata.paths)  # type: ignore[attr-defined]


@asynccontextmanager
async def auditing(cluster: SimCluster, config: AutorecoveryConfig = QUICK) -> AsyncIterator[Auditor]:
    async with cluster.connect() as bk:
        records = records_of(bk.metadata_store)
        await records.prepare(config.lost_bookie_delay_s)
        auditor = Auditor(bk, records, "auditor", config)
        task = asyncio.ensure_future(auditor.run())
        try:
            yield auditor
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def mark_of(cluster: SimCluster, ledger: int) -> tuple[BookieId, ...] | None:
    async with cluster.connect() as bk:
        mark = await bk.metadata_store.under_replication.read(LedgerId(ledger))
        return mark.bookies if mark is not None else None


async def checked(cluster: SimCluster) -> None:
    """Wait until a check of all ledgers is completed."""
    async with cluster.connect() as bk:
        records = records_of(bk.metadata_store)
        async with asyncio.timeout(300):
            while await records.last_check(ClusterCheck.ALL_LEDGERS) is None:  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(0.5)


@pytest.mark.rule("A9")
def test_every_ledger_that_names_a_lost_bookie_is_marked_open_or_closed_and_no_other() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, auditing(cluster):
            closed = [await written(cluster, bk, 10) for _ in range(8)]
            writer = await bk.create_ledger(password=b"pw")
            await append(cluster, writer, 3)
            naming = {i for i in [*closed, writer.id] if "b2" in (await bk.metadata(i)).bookies}
            assert 0 < len(naming) < 9
            cluster.node("b2").crash()
            marks = bk.metadata_store.under_replication
            found: set[int] = set()
            async with asyncio.timeout(100):
                while not naming - {writer.id} <= found:
                    await asyncio.sleep(0.5)
                    found = {ledger async for ledger in marks.ledgers()}
            assert found <= naming
            for ledger in found:
                assert await mark_of(cluster, ledger) == ("b2",)
            await writer.abandon()

    run(story)


@pytest.mark.rule("A4", "A9")
def test_a_check_of_all_ledgers_marks_what_a_bookie_lacks_and_notes_when_it_was_done() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            whole = await written(cluster, bk, 20)
            lacking = await bk.create_ledger(password=b"pw", ensemble=4, write_quorum=4, ack_quorum=2)
            await append(cluster, lacking, 5)
            cluster.node("b3").crash()
            await append(cluster, lacking, 5)
            await lacking.close()
            cluster.node("b3").restart()
            await cluster.wait_until_up()
            marks = bk.metadata_store.under_replication
            mark = await marks.read(lacking.id)
            assert mark is not None and await marks.remove(mark), "as if the writer had left none"
            async with auditing(cluster) as auditor:
                await checked(cluster)
                assert await mark_of(cluster, lacking.id) == ("b3",)
                assert await mark_of(cluster, whole) is None
                assert auditor.checking == "2 ledgers were checked: 1 ledger lacks copies, of 0 it is not known"
                last = await records_of(bk.metadata_store).last_check(ClusterCheck.REPLICAS)
                assert last is not None
                await asyncio.sleep(30)
                assert await records_of(bk.metadata_store).last_check(ClusterCheck.REPLICAS) == last, "not due again"

    run(story)


@pytest.mark.rule("A9")
def test_a_check_that_was_noted_by_a_clock_that_was_ahead_puts_off_no_other() -> None:
    """An auditor whose clock was years ahead noted its check, and no auditor after it made one until that year."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            records, now_ms = records_of(bk.metadata_store), cluster.client.seams.clock.wall_ms
            ahead_ms = now_ms() + 10 * 365 * 86_400_000
            for check in ClusterCheck:
                await records.record_check(check, ahead_ms)
            async with auditing(cluster), asyncio.timeout(300):
                while await records.last_check(ClusterCheck.ALL_LEDGERS) == ahead_ms:  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(0.5)
            a_little_ms = now_ms() + 60_000
            await records.record_check(ClusterCheck.ALL_LEDGERS, a_little_ms)
            async with auditing(cluster):
                await asyncio.sleep(30)
                assert await records.last_check(ClusterCheck.ALL_LEDGERS) == a_little_ms, "clocks differ a little"

    run(story)


def rot(cluster: SimCluster, bookie: str, payload: bytes) -> int:
    """Flip a bit of every stored copy of a payload on one bookie's disk. Returns how many there are."""
    disk, count = cluster.node(bookie).disk, 0
    for path, content in disk.files().items():
        at = content.find(payload)
        while at >= 0:
            disk.flip_bit(path, 8 * at)
            count += 1
            at = content.find(payload, at + 1)
    return count


def test_a_sample_finds_an_entry_that_is_listed_and_damaged() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 40)
            victim = sorted((await bk.metadata(ledger)).bookies)[0]
            assert rot(cluster, victim, b"20 " * 50) >= 1
            async with auditing(cluster, AutorecoveryConfig(poll_s=1.0, check_ledgers_per_s=0)):
                await checked(cluster)
                assert await mark_of(cluster, ledger) is None, "the bookie lists it"
            await records_of(bk.metadata_store).request_check(ClusterCheck.ALL_LEDGERS)
            async with auditing(cluster, AutorecoveryConfig(poll_s=1.0, check_ledgers_per_s=0, sample_percent=100)):
                await checked(cluster)
                assert await mark_of(cluster, ledger) == (victim,)

    run(story)


def test_what_a_forgotten_bookie_held_is_marked_by_the_check() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await written(cluster, bk, 5) for _ in range(3)]
            cluster.node("b1").crash()
            await asyncio.sleep(5)
            await cluster.forget_cookie("b1")
            naming = {i for i in ledgers if "b1" in (await bk.metadata(i)).bookies}
            assert naming
            async with auditing(cluster):
                await checked(cluster)
                assert {i for i in ledgers if await mark_of(cluster, i) == ("b1",)} == naming

    run(story)


@pytest.mark.rule("A9")
def test_an_auditor_whose_session_ended_votes_again() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, auditing(cluster) as auditor:
            await until(lambda: auditor.elected)
            store = auditor._metadata.store
            cluster.store.expire(store)  # type: ignore[arg-type]
            await asyncio.sleep(5)
            records = records_of(bk.metadata_store)
            assert auditor.elected and await records.auditor() == "auditor" and len(await records.votes()) == 1

    run(story)
