"""Q6: copies stand apart in racks: at creation, when a member is replaced, in repair and after a rack came back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bookkeeper.autorecovery.auditor import Auditor
from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.worker import RepairWorker
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import NotEnoughBookiesError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.ledger.location import Location
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes
from bookkeeper.replication.inspection.explain_ledger import explain_ledger
from bookkeeper.testing.cluster import CLIENT, SimCluster
from tests.bookkeeper.replication.clusters import Story, append, written

ENFORCED = replace(CLIENT, racks_enforced=True)


def _run(story: Story, bookies: int) -> None:
    SimCluster(1, bookies).run(story)


async def _place(bk: BookKeeper, **racks: str) -> None:
    """Say which bookies stand in a rack, ``a="b1 b2"``, and have this client know it."""
    for rack, names in racks.items():
        for name in names.split():
            await bk.metadata_store.locations.put(BookieId(name), Location.parse(rack))
    await bk.services.locations.refresh()


def _reads(cluster: SimCluster) -> dict[str, float]:
    """The reads that each running bookie has answered."""
    ok = {"op": "read", "status": "OK"}
    return {name: server.metrics.counter("requests_total", "", **ok).value for name, server in cluster.servers.items()}


def _in_rack(metadata: LedgerMetadata, *names: str) -> set[BookieId]:
    return set(metadata.bookies) & set(map(BookieId, names))


@pytest.mark.rule("Q6")
def test_new_ledgers_have_copies_in_each_rack_and_a_change_counts_at_once() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await _place(bk, a="b1 b2", b="b3 b4")
            for _ in range(10):
                metadata = await bk.metadata(await written(cluster, bk, 1, ensemble=2, write_quorum=2, ack_quorum=2))
                assert len(_in_rack(metadata, "b1", "b2")) == 1
            async with cluster.connect() as other:
                await other.metadata_store.locations.put(BookieId("b2"), Location.parse("/b"))
                await asyncio.sleep(2)
            for _ in range(5):
                metadata = await bk.metadata(await written(cluster, bk, 1, ensemble=2, write_quorum=2, ack_quorum=2))
                assert _in_rack(metadata, "b1") == {"b1"}

    _run(story, 4)


@pytest.mark.rule("Q6")
def test_a_writer_replaces_a_bookie_by_one_that_keeps_the_copies_apart() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await _place(bk, a="b1 b2 b3", b="b4 b5")
            async with await bk.create_ledger(password=b"pw", ensemble=2, write_quorum=2, ack_quorum=1) as ledger:
                await append(cluster, ledger, 3)
                (gone,) = _in_rack(await bk.metadata(ledger.id), "b4", "b5")
                cluster.node(gone).crash()
                await append(cluster, ledger, 30)
                await asyncio.sleep(10)
                await append(cluster, ledger, 3)
            last = (await bk.metadata(ledger.id)).last_fragment.ensemble
            assert gone not in last and set(last) & {"b4", "b5"}, "the other one of the same rack"

    _run(story, 5)


@pytest.mark.rule("Q6")
def test_where_racks_are_enforced_no_ledger_is_made_in_one_rack() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(ENFORCED) as bk:
            await _place(bk, a="b1 b2 b3")
            with pytest.raises(NotEnoughBookiesError, match="in at least 2 racks"):
                await bk.create_ledger(password=b"pw")
            await _place(bk, b="b3")
            async with await bk.create_ledger(password=b"pw") as ledger:
                await append(cluster, ledger, 3)

    _run(story, 3)


@pytest.mark.rule("Q6")
def test_a_bookie_whose_settings_have_a_location_keeps_it_in_the_metadata_when_it_is_gone() -> None:
    async def story(cluster: SimCluster) -> None:
        cluster.node("b1").crash()
        await asyncio.sleep(30)
        async with cluster.connect() as bk:
            await asyncio.sleep(1)
            assert str(bk.services.locations.of(BookieId("b1"))) == "/east/r7"

    SimCluster(1, 1, location="east/r7/").run(story)


@pytest.mark.rule("Q6")
def test_a_reader_asks_the_copy_in_its_rack_then_one_in_its_region_and_others_if_these_fail() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 30, ensemble=3)
            await _place(bk, **{"/east/a": "b1", "/east/b": "b2", "/west/c": "b3"})
        async with cluster.connect(replace(CLIENT, location="/east/b")) as near:
            reader = await near.open_ledger(ledger, password=b"pw", recovery=False)
            before = _reads(cluster)
            for entry in range(30):
                await reader.read_entry(entry)
            read = {name: count - before[name] for name, count in _reads(cluster).items()}
            assert read["b2"] >= 30 and read["b1"] == read["b3"] == 0
            cluster.node("b2").crash()
            for entry in range(10):
                await reader.read_entry(entry)
            after = _reads(cluster)
            assert after["b1"] - before["b1"] >= 10 and after["b3"] == before["b3"]

    _run(story, 3)


@pytest.mark.rule("Q6")
def test_the_loss_of_a_rack_is_explained() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = LedgerId(await written(cluster, bk, 10, ensemble=2, write_quorum=2, ack_quorum=2))
            one, two = sorted((await bk.metadata(ledger)).bookies)
            await _place(bk, a=f"{one} {two}")
            lost = (await explain_ledger(bk, ledger)).after_losing_each_place()
            assert {rack: (loss.entries, loss.bookies) for rack, loss in lost.items()} == {"/a": (10, (one, two))}
            await _place(bk, b=two)
            lost = (await explain_ledger(bk, ledger)).after_losing_each_place()
            assert {rack: loss.entries for rack, loss in lost.items()} == {"/a": 0, "/b": 0}

    _run(story, 3)


@pytest.mark.rule("Q6")
@pytest.mark.parametrize("moves", [True, False])
def test_after_a_drill_that_switched_a_rack_off_copies_are_moved_back_if_that_is_wanted(moves: bool) -> None:
    """What apache/bookkeeper#3377 tells: the next drill lost data."""

    async def story(cluster: SimCluster) -> None:
        config = AutorecoveryConfig(
            lost_bookie_delay_s=1,
            mass_loss_share=1.0,
            poll_s=1.0,
            ledgers_interval_s=0,
            placement_interval_s=20.0,
            repair_placement=moves,
        )
        async with cluster.connect() as bk:
            await _place(bk, a="b1 b2", b="b3 b4")
            ledger = LedgerId(await written(cluster, bk, 10, ensemble=2, write_quorum=2, ack_quorum=2))
            records = AutorecoveryNodes(bk.metadata_store.store, bk.metadata_store.paths)
            await records.prepare(config.lost_bookie_delay_s)
            auditor, worker = Auditor(bk, records, "auditor", config), RepairWorker(bk, records, "worker", config)
            tasks = [asyncio.ensure_future(each.run()) for each in (auditor, worker)]
            for name in ("b3", "b4"):
                cluster.node(name).crash()
            async with asyncio.timeout(600):
                while _in_rack(await bk.metadata(ledger), "b3", "b4"):  # noqa: ASYNC110 - virtual time
                    await asyncio.sleep(1)
            for name in ("b3", "b4"):
                cluster.node(name).restart()
            await cluster.wait_until_up("b3", "b4")
            await asyncio.sleep(120)
            apart = bool(_in_rack(await bk.metadata(ledger), "b3", "b4"))
            assert apart is moves
            assert ("1 closed ledger has entries whose copies all stand" in auditor.placed) is not moves
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    _run(story, 4)
