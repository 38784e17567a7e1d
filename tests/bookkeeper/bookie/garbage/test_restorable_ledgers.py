"""A deleted ledger can be brought back for its grace time, with its data; then the space comes back (G8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.bookie.identity.disk_identity import survey
from bookkeeper.client.operators import Operator
from bookkeeper.errors import LedgerFencedError, MetadataFormatError, MetadataUnavailableError, NoSuchLedgerError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerState
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.inspection.check import incomplete_copies
from bookkeeper.replication.repairs import GracePeriods, repair_ledger
from bookkeeper.testing.cluster import CLIENT, SimCluster
from tests.bookkeeper.replication.clusters import Story, append, holds, record_of, written

GRACE_S = 600
PATIENT = replace(CLIENT, delete_grace_s=GRACE_S)
ONE_DAY_S = 86_400.0


def run(story: Story, bookies: int = 3, **options: Any) -> None:
    cluster = SimCluster(1, bookies, **{"garbage_interval_s": 60.0, "garbage_grace_s": 30.0, **options})
    cluster.run(story, within_s=ONE_DAY_S)


def bytes_of_logs(cluster: SimCluster, bookie: str) -> int:
    disk = cluster.node(bookie).disk
    return sum(len(disk.read_file(f"/data/ledgers/{name}")) for name in disk.list("/data/ledgers") if "log" in name)


@pytest.mark.rule("G8", "G1", "L1")
def test_a_deleted_ledger_comes_back_with_its_data_and_after_the_grace_its_space_does() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            operator = Operator(bk)
            stays = await written(cluster, bk, 20)
            back = await written(cluster, bk, 400, ack_quorum=3)
            before = await bk.metadata(back)
            await bk.delete_ledger(back)
            with pytest.raises(NoSuchLedgerError):
                await bk.open_ledger(back, b"pw")
            await asyncio.sleep(GRACE_S - 200)
            assert [each.ledger_id async for each in operator.deleted_ledgers()] == [back]
            for name in cluster.names:
                assert back in cluster.servers[name].engine.ledgers()
                garbage = cluster.servers[name].parts.garbage
                assert garbage.restorable == 1
            assert await operator.undelete_ledger(back) == before
            await cluster.check_acked()
            assert await incomplete_copies(RepairContext(services=bk.services), await record_of(bk, back)) == []
            await asyncio.sleep(GRACE_S)
            await cluster.check_acked()

            payload = bytes(60_000)
            async with await bk.create_ledger(password=b"pw", ack_quorum=3) as large:
                for _ in range(60):
                    await large.append(payload)
            most = {name: bytes_of_logs(cluster, name) for name in cluster.names}
            await bk.delete_ledger(large.id)
            await asyncio.sleep(GRACE_S + 200)
            with pytest.raises(NoSuchLedgerError, match="cannot be brought back"):
                await operator.undelete_ledger(large.id)
            assert [each async for each in operator.deleted_ledgers()] == []
            for name in cluster.names:
                assert large.id not in cluster.servers[name].engine.ledgers()
                assert bytes_of_logs(cluster, name) < most[name] / 2
            assert await bk.exists(stays)
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("G8", "F6")
@pytest.mark.parametrize("whose", ["the store's", "everybody's"])
def test_clocks_that_are_a_day_ahead_for_a_minute_end_no_grace(whose: str) -> None:
    """``bk ledger list --deleted`` looks meanwhile; a bookie starts meanwhile."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            deleted = await written(cluster, bk, 20)
            await bk.delete_ledger(deleted)
            await asyncio.sleep(100)
            nodes = [cluster.client, *(map(cluster.node, cluster.names) if whose == "everybody's" else ())]
            for ahead in (86_400_000, 0):
                for node in nodes:
                    node.clock.wall_offset_ms = ahead
                assert [each.ledger_id async for each in Operator(bk).deleted_ledgers()] == ([] if ahead else [deleted])
                cluster.node("b1").crash()
                cluster.node("b1").restart()
                await cluster.wait_until_up()
                await asyncio.sleep(61)
            await asyncio.sleep(200)
            assert all(deleted in cluster.servers[name].engine.ledgers() for name in cluster.names)
            assert (await Operator(bk).undelete_ledger(deleted)).is_closed
            await cluster.check_acked()

    run(story, garbage_interval_s=20.0, garbage_grace_s=100.0)


@pytest.mark.rule("G8", "F6")
def test_a_bookie_whose_clock_is_an_hour_behind_keeps_the_space_for_an_hour_more_and_nobody_else_does() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            deleted = await written(cluster, bk, 20)
            cluster.node("b1").clock.wall_offset_ms = -3_600_000
            await bk.delete_ledger(deleted)
            await asyncio.sleep(GRACE_S + 300)
            assert not any(deleted in cluster.servers[name].engine.ledgers() for name in cluster.names)

    run(story)


@pytest.mark.rule("G8", "M6")
def test_a_running_writer_is_stopped_and_what_it_was_told_comes_back() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk, cluster.connect(PATIENT) as other:
            writer = await bk.create_ledger(password=b"pw")
            await append(cluster, writer, 20)
            await other.delete_ledger(writer.id)
            with pytest.raises(LedgerFencedError):
                await writer.append(b"late")
            found = await Operator(other).undelete_ledger(writer.id)
            assert found.state is LedgerState.CLOSED and found.last_entry >= 19
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("G8")
def test_a_ledger_that_was_deleted_by_force_is_closed_when_it_comes_back() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            writer = await bk.create_ledger(password=b"pw")
            await append(cluster, writer, 20)
            await writer.abandon()
            for name in cluster.names:
                cluster.node(name).crash()
            await bk.delete_ledger(writer.id, force=True)
            for name in cluster.names:
                cluster.node(name).restart()
            await cluster.wait_until_up()
            assert (await Operator(bk).undelete_ledger(writer.id)).is_closed
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("G8", "G1")
def test_nothing_is_dropped_while_the_list_of_deleted_ledgers_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            deleted = await written(cluster, bk, 20)
            await bk.delete_ledger(deleted, grace_s=0)
            records = cluster.servers["b1"]._metadata.ledgers.restorable

            async def unreadable() -> AsyncIterator[LedgerId]:
                for answer in (b"", None):
                    if answer is None:
                        raise MetadataUnavailableError("no answer")
                    yield LedgerId(0)

            monkeypatch.setattr(records, "all", unreadable)
            await asyncio.sleep(300)
            assert deleted in cluster.servers["b1"].engine.ledgers()
            assert deleted not in cluster.servers["b2"].engine.ledgers()

    run(story)


@pytest.mark.rule("G8", "M6")
def test_a_bookie_that_never_had_it_takes_a_copy_of_what_came_back() -> None:
    """It had been told of the id as one of a neighbour's that was gone for good."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            back = await written(cluster, bk, 20)
            (stranger,) = set(cluster.names) - (await bk.metadata(back)).bookies
            gone = []
            for _ in range(6):
                async with await bk.create_ledger() as neighbour:
                    await neighbour.append(b"x")
                gone.append(neighbour.id)
            await bk.delete_ledger(back)
            for ledger_id in gone:
                await bk.delete_ledger(ledger_id, grace_s=0)
            await asyncio.sleep(300)
            assert any(ledger_id in cluster.servers[stranger].engine.dropped for ledger_id in gone)
            await Operator(bk).undelete_ledger(back)
            (victim, *_) = sorted((await bk.metadata(back)).bookies)
            cluster.node(victim).crash()
            await asyncio.sleep(30)
            context = RepairContext(services=bk.services)
            await repair_ledger(context, back, GracePeriods(0), None)
            assert stranger in (await bk.metadata(back)).bookies
            assert holds(cluster, stranger, back)
            await cluster.check_acked()

    run(story, bookies=4)


@pytest.mark.rule("G8", "B9", "B5")
def test_a_bookie_that_lost_its_disk_doubts_what_can_be_brought_back() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            deleted = await written(cluster, bk, 20, ack_quorum=3)
            gone = await written(cluster, bk, 20, ack_quorum=3)
            await bk.delete_ledger(deleted)
            await bk.delete_ledger(gone, grace_s=0)
            found = await survey(bk.metadata_store, BookieId("b1"), served_before=True)
            assert found.doubted == {deleted}

    run(story)


@pytest.mark.rule("G8", "G1")
def test_a_damaged_record_keeps_the_data_and_is_listed_until_somebody_ends_it() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            deleted = await written(cluster, bk, 20)
            await bk.delete_ledger(deleted)
            records = bk.metadata_store.ledgers.restorable
            await bk.metadata_store.store.set(records.path(deleted), b"rot", None)
            await asyncio.sleep(GRACE_S + 200)
            (listed,) = [each async for each in Operator(bk).deleted_ledgers()]
            assert listed.ledger_id == deleted
            with pytest.raises(MetadataFormatError):
                _ = listed.metadata
            with pytest.raises(MetadataFormatError, match="is damaged"):
                await Operator(bk).undelete_ledger(deleted)
            assert all(deleted in cluster.servers[name].engine.ledgers() for name in cluster.names)
            await bk.delete_ledger(deleted, grace_s=0)
            await asyncio.sleep(200)
            assert all(deleted not in cluster.servers[name].engine.ledgers() for name in cluster.names)

    run(story)


@pytest.mark.rule("G8")
def test_deleting_once_more_without_grace_ends_it() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            deleted = await written(cluster, bk, 20)
            await bk.delete_ledger(deleted)
            await bk.delete_ledger(deleted, grace_s=0)
            with pytest.raises(NoSuchLedgerError):
                await Operator(bk).undelete_ledger(deleted)
            with pytest.raises(NoSuchLedgerError):
                await bk.delete_ledger(deleted, grace_s=0)
            await asyncio.sleep(200)
            assert all(deleted not in cluster.servers[name].engine.ledgers() for name in cluster.names)

    run(story)


@pytest.mark.rule("G8", "G1")
@pytest.mark.parametrize("back", ["deleted again", "brought back"])
def test_what_comes_back_between_the_looks_of_a_pass_is_kept(back: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pass lists the ledgers while this one is deleted, and the deleted ones while it is brought back: only what
    is read of it by itself tells."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(PATIENT) as bk:
            operator = Operator(bk)
            ledger = await written(cluster, bk, 5, ack_quorum=3)
            garbage = cluster.servers["b1"].parts.garbage
            records, records_has = garbage._metadata.ledgers.restorable, garbage._metadata.ledgers.restorable.has

            async def none() -> AsyncIterator[LedgerId]:
                for each in list[LedgerId]():
                    yield each

            async def has(ledger_id: LedgerId, *, fresh: bool = False) -> bool:
                if back == "brought back":
                    await operator.undelete_ledger(ledger)
                return await records_has(ledger_id, fresh=fresh)

            monkeypatch.setattr(records, "all", none)
            monkeypatch.setattr(records, "has", has)
            await garbage.one_pass()
            for _ in range(3):
                await bk.delete_ledger(ledger)
                assert await garbage.one_pass() == set()
                await asyncio.sleep(40)
                if back == "deleted again":
                    assert await garbage.one_pass() == set()
                    await operator.undelete_ledger(ledger)
            assert ledger in cluster.servers["b1"].engine.ledgers()

    run(story, garbage_interval_s=10.0**6, garbage_shrink_max=1.0)
