"""Auditor and worker together, on production bookies in a simulated world: nobody types anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bookkeeper.autorecovery import AutorecoveryConfig, AutorecoveryReport, AutorecoveryService
from bookkeeper.autorecovery.service import show_report
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes
from bookkeeper.metrics import Counter, Gauge, Metrics
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.inspection.check import incomplete_copies
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.autorecovery.test_auditor import rot
from tests.bookkeeper.replication.clusters import Story, append, record_of, until, written

QUICK = AutorecoveryConfig(lost_bookie_delay_s=3, poll_s=1.0, grace_ms=5_000, backoff_s=1.0, check_ledgers_per_s=0)


def run(story: Story, bookies: int = 4, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


@asynccontextmanager
async def healing(cluster: SimCluster, config: AutorecoveryConfig = QUICK) -> AsyncIterator[AutorecoveryService]:
    async with cluster.connect() as bk:
        service = AutorecoveryService(bk, "healer", config)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()


async def marked(bk: BookKeeper) -> list[LedgerId]:
    return [ledger async for ledger in bk.metadata_store.under_replication.ledgers()]


async def until_whole(bk: BookKeeper, ledgers: list[LedgerId], gone: str = "", limit_s: float = 300.0) -> None:
    """In virtual time: until every copy was seen on a bookie that is not ``gone``, and no mark is left."""
    async with asyncio.timeout(limit_s):
        for ledger in ledgers:
            while True:
                record = await record_of(bk, ledger)
                if gone not in record.metadata.bookies and not await incomplete_copies(
                    RepairContext(services=bk.services), record
                ):
                    break
                await asyncio.sleep(0.5)
        while await marked(bk):  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.5)


@pytest.mark.rule("A5", "A7", "A9", "V3")
@pytest.mark.parametrize("seed", range(3))
def test_a_bookie_that_is_gone_for_good_is_replaced_in_every_ledger_and_nobody_is_asked(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, healing(cluster) as service:
            ledgers = [await written(cluster, bk, 30) for _ in range(8)]
            writer = await bk.create_ledger(password=b"pw")
            await append(cluster, writer, 10)
            cluster.node("b2").crash()
            await append(cluster, writer, 10)
            await until_whole(bk, ledgers, gone="b2")
            assert service.report().auditor and service.report().repaired >= 1
            await append(cluster, writer, 5)
            await writer.close()
            await cluster.check_acked()

    run(story, seed=seed)


@pytest.mark.rule("A4")
def test_a_bookie_that_restarts_within_the_delay_causes_no_copy() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, healing(cluster, AutorecoveryConfig(poll_s=1.0)) as service:
            ledgers = [await written(cluster, bk, 30) for _ in range(4)]
            cluster.node("b2").crash()
            await asyncio.sleep(10)
            assert "may come back" in service.report().auditing and not await marked(bk)
            cluster.node("b2").restart()
            await cluster.wait_until_up()
            await asyncio.sleep(60)
            assert service.report().auditing.startswith("all 4 bookies are here")
            assert service.report().copied_entries == 0 and not await marked(bk)
            await until_whole(bk, ledgers)

    run(story)


@pytest.mark.rule("A3")
def test_a_ledger_whose_writer_is_gone_is_recovered_after_its_grace_period_and_then_repaired() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, healing(cluster) as service:
            idle = await bk.create_ledger(password=b"pw", ensemble=3)
            await append(cluster, idle, 10)
            (victim, *_) = idle.metadata.last_fragment.ensemble
            await idle.abandon()
            cluster.node(victim).crash()
            await until_stuck(service)
            (stuck,) = service.report().stuck
            assert stuck.ledger == idle.id and "is recovered if its writer has not moved on within 5 s" in stuck.reason
            assert not (await bk.metadata(idle.id)).is_closed
            await until_whole(bk, [LedgerId(idle.id)], gone=victim)
            assert service.report().recovered == 1 and (await bk.metadata(idle.id)).is_closed
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A8")
def test_a_ledger_that_cannot_be_repaired_says_why_and_does_not_delay_the_others() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, healing(cluster) as service:
            wide = await written(cluster, bk, 10, ensemble=4, write_quorum=3, ack_quorum=2)
            others = [await written(cluster, bk, 30) for _ in range(6)]
            cluster.node("b2").crash()
            async with asyncio.timeout(100):
                while await marked(bk) != [wide]:  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(0.5)
            await until_stuck(service)
            (stuck,) = service.report().stuck
            assert stuck.ledger == wide and "no bookie can take the place of b2" in stuck.reason
            await cluster.add_bookie("b5")
            await until_whole(bk, [wide, *others], gone="b2")
            assert service.report().stuck == ()
            await cluster.check_acked()

    run(story)


async def until_stuck(service: AutorecoveryService) -> None:
    async with asyncio.timeout(100):
        await until(lambda: service.report().stuck)


@pytest.mark.rule("A9")
def test_half_of_the_bookies_lost_together_are_waited_for_until_an_operator_says_that_they_are_gone() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, healing(cluster) as service:
            ledgers = [await written(cluster, bk, 20) for _ in range(4)]
            for name in ("b5", "b6", "b1"):
                cluster.node(name).crash()
            await asyncio.sleep(60)
            assert "3 of 6 bookies are lost together (b1, b5, b6)" in service.report().auditing
            assert not await marked(bk)
            records = AutorecoveryNodes(bk.metadata_store.store, bk.metadata_store.paths)
            await records.write_delay(3)
            async with asyncio.timeout(200):
                await until(lambda: service.report().auditing.startswith("lost: b1, b5, b6; their ledgers"))
            for gone in ("b1", "b5", "b6"):
                await until_whole(bk, ledgers, gone=gone)

    run(story, bookies=6)


@pytest.mark.rule("A9")
def test_two_processes_elect_one_auditor_and_the_other_takes_over() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as one, cluster.connect() as two:
            first, second = AutorecoveryService(one, "first", QUICK), AutorecoveryService(two, "second", QUICK)
            await first.start()
            await asyncio.sleep(2)
            await second.start()
            await asyncio.sleep(5)
            records = AutorecoveryNodes(bk.metadata_store.store, bk.metadata_store.paths)
            assert await records.auditor() == "first"
            reports = {name: AutorecoveryReport.decode(data) for name, data in (await records.reports()).items()}
            assert {name: report.auditor for name, report in reports.items()} == {"first": True, "second": False}
            assert reports["second"].auditing == "first is the auditor"
            await first.stop()
            await asyncio.sleep(5)
            assert await records.auditor() == "second" and list(await records.reports()) == ["second"]
            ledgers = [await written(cluster, bk, 20) for _ in range(4)]
            cluster.node("b3").crash()
            await until_whole(bk, ledgers, gone="b3")
            await second.stop()

    run(story)


def test_nothing_is_repaired_while_autorecovery_is_disabled() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, healing(cluster) as service:
            ledgers = [await written(cluster, bk, 20) for _ in range(2)]
            await bk.metadata_store.under_replication.mark(ledgers[0], [BookieId("b1")], 1)
            records = AutorecoveryNodes(bk.metadata_store.store, bk.metadata_store.paths)
            await records.disable()
            await asyncio.sleep(2)
            await bk.metadata_store.under_replication.mark(ledgers[1], [BookieId("b1")], 1)
            cluster.node("b2").crash()
            await asyncio.sleep(30)
            assert ledgers[1] in await marked(bk) and service.report().copied_entries == 0
            assert "autorecovery is disabled" in service.report().auditing
            turns: list[object] = []
            listed = service.worker._list

            async def counted() -> bool:
                turns.append(None)
                return await listed()

            service.worker._list = counted  # type: ignore[method-assign]
            await asyncio.sleep(30)
            assert len(turns) <= 31, "a ledger that waits is no reason to ask without a pause"
            await records.enable()
            await until_whole(bk, ledgers, gone="b2")

    run(story)


@pytest.mark.rule("A7", "K23")
def test_a_bookie_that_comes_back_empty_gets_its_copies_again() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, healing(cluster):
            ledgers = [await written(cluster, bk, 20) for _ in range(4)]
            idle = await bk.create_ledger(password=b"pw")
            await append(cluster, idle, 10)
            cluster.node("b1").crash()
            cluster.lose_disk("b1")
            cluster.node("b1").restart()
            await until_whole(bk, [*ledgers, LedgerId(idle.id)], gone="")
            await cluster.check_acked()
            await idle.abandon()

    run(story)


@pytest.mark.rule("A7")
def test_damaged_entries_are_found_by_sampling_and_written_anew_where_they_are() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 40)
            victim = sorted((await bk.metadata(ledger)).bookies)[0]
            assert rot(cluster, victim, b"20 " * 50) >= 1
            context, record = RepairContext(services=bk.services), await record_of(bk, ledger)
            assert await incomplete_copies(context, record, sample_percent=100)
            async with healing(cluster, replace(QUICK, sample_percent=100)) as service:
                await until(lambda: service.report().repaired)
            record = await record_of(bk, ledger)
            assert victim in record.metadata.bookies
            assert await incomplete_copies(context, record, sample_percent=100) == []

    run(story)


def test_what_nobody_foresaw_does_not_end_autorecovery_for_good(caplog: pytest.LogCaptureFixture) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, healing(cluster) as service:
            ledgers = [await written(cluster, bk, 10) for _ in range(3)]
            listed = service.worker._list

            async def once() -> bool:
                service.worker._list = listed  # type: ignore[method-assign]
                raise RuntimeError("a bug")

            service.worker._list = once  # type: ignore[method-assign]
            await asyncio.sleep(10)
            cluster.node("b2").crash()
            await until_whole(bk, ledgers, gone="b2")

    run(story)
    assert sum("begins anew" in each.message for each in caplog.records) == 1


REPORT = AutorecoveryReport(
    "healer",
    auditor=True,
    working=("ledger 1: copies", "ledger 2: copies"),
    repaired=3,
    recovered=4,
    copied_entries=5,
    copied_bytes=6,
    waiting=7,
    stuck_count=8,
)


def test_every_number_of_the_report_is_a_metric_of_its_kind() -> None:
    metrics = Metrics()
    for report in (AutorecoveryReport("healer"), REPORT):  # the second replaces the first
        show_report(report, metrics)
    shown = {
        name: (type(metric), metric.value) for name, _, _, metric in metrics if isinstance(metric, Counter | Gauge)
    }
    assert shown == {
        "autorecovery_is_auditor": (Gauge, True),
        "autorecovery_ledgers_working": (Gauge, 2),
        "autorecovery_ledgers_waiting": (Gauge, 7),
        "autorecovery_ledgers_stuck": (Gauge, 8),
        "autorecovery_ledgers_repaired_total": (Counter, 3),
        "autorecovery_ledgers_recovered_total": (Counter, 4),
        "autorecovery_copied_entries_total": (Counter, 5),
        "autorecovery_copied_bytes_total": (Counter, 6),
    }
    assert all(text.endswith(".") for _, text, _, _ in metrics)
