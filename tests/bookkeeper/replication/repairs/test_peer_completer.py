"""A bookie that has lost data brings it back from the others by itself: production bookies in a simulated world."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import DigestType, LedgerMetadata, QuorumSpec
from bookkeeper.replication.copying import repair_lock
from bookkeeper.replication.copying.copies import PartialCopy, copy_at
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, append, holds, until, written

SHAPES = [{}, {"ensemble": 4, "write_quorum": 2, "ack_quorum": 2}]


def run(story: Story, bookies: int = 4, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


async def loses_its_journal(cluster: SimCluster, bookie: str) -> None:
    """Killed, and its journal is gone: what was not checkpointed is lost. It is up again, in limbo."""
    node = cluster.node(bookie)
    node.crash()
    for name in [name for name in node.disk.list("/data/journal") if name.endswith(".journal")]:
        node.disk.unlink(f"/data/journal/{name}")
    for name in [name for name in node.disk.list("/data/ledgers") if name.endswith(".log")]:
        node.disk.unlink(f"/data/ledgers/{name}")
    node.restart()
    await cluster.wait_until_up(bookie)


@pytest.mark.rule("B9", "A1")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_limbo_ends_by_itself_when_the_others_have_what_was_lost(shape: dict[str, Any]) -> None:
    """Nobody brought back what a bookie had lost unless an operator did: it stayed in limbo for ever."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 100, **shape)
            metadata = await bk.metadata(ledger)
            bookie = metadata.last_fragment.ensemble[1]
            await loses_its_journal(cluster, bookie)
            await until(lambda: not cluster.servers[bookie].engine.in_limbo)
            assert holds(cluster, bookie, ledger) == set(metadata.spec.stripe(1, 0, 100))
            assert await bk.metadata(ledger) == metadata, "nothing was swapped"
            for other in metadata.last_fragment.ensemble:
                if other != bookie and metadata.spec.write_quorum == 3:
                    cluster.node(other).crash()
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("B9", "W10a", "A3")
def test_a_ledger_that_is_open_stays_in_limbo_until_somebody_closes_it() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw", ack_quorum=2)
            await append(cluster, ledger, 50)
            bookie = (await bk.metadata(ledger.id)).last_fragment.ensemble[0]
            await loses_its_journal(cluster, bookie)
            await asyncio.sleep(150)
            server = cluster.servers[bookie]
            assert server.engine.in_limbo
            [said] = [text for text in server.health()["sentences"] if text.startswith(f"ledger {ledger.id}:")]
            assert "once it is closed" in said
            assert not holds_any(cluster, bookie, ledger.id)
            await ledger.close()
            await until(lambda: not server.engine.in_limbo)
            await cluster.check_acked()

    run(story)


def holds_any(cluster: SimCluster, bookie: str, ledger_id: int) -> bool:
    return LedgerId(ledger_id) in cluster.servers[bookie].engine.ledgers()


@pytest.mark.rule("B9", "A4", "A8", "Q2")
def test_what_nobody_else_has_now_keeps_its_ledger_in_limbo_with_a_reason_and_no_other() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            first = await written(cluster, bk, 40, ensemble=2, write_quorum=2, ack_quorum=2)
            ensemble = (await bk.metadata(first)).last_fragment.ensemble
            bookie, other = ensemble
            while True:
                second = await written(cluster, bk, 40, ensemble=2, write_quorum=2, ack_quorum=2)
                members = (await bk.metadata(second)).last_fragment.ensemble
                if bookie in members and other not in members:
                    break
            cluster.node(other).crash()
            await loses_its_journal(cluster, bookie)
            await until(lambda: second in holding(cluster, bookie))
            await asyncio.sleep(70)
            server = cluster.servers[bookie]
            assert server.engine.in_limbo
            assert any(f"ledger {first}" in text and "tries again" in text for text in server.health()["sentences"])
            assert len(holds(cluster, bookie, second)) == 40, "one bad ledger holds up no other"
            cluster.node(other).restart()
            await until(lambda: not server.engine.in_limbo)
            await cluster.check_acked()

    run(story)


def holding(cluster: SimCluster, bookie: str) -> set[LedgerId]:
    return set(cluster.servers[bookie].engine.ledgers())


@pytest.mark.rule("A10")
def test_a_ledger_that_somebody_repairs_is_left_to_him_for_now() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 30)
            bookie = (await bk.metadata(ledger)).last_fragment.ensemble[0]
            async with repair_lock(bk.metadata_store, ledger, "somebody") as holder:
                assert holder is None
                await loses_its_journal(cluster, bookie)
                await asyncio.sleep(30)
                assert any(
                    "somebody holds the lock of its repair" in text
                    for text in cluster.servers[bookie].health()["sentences"]
                )
            await until(lambda: not cluster.servers[bookie].engine.in_limbo)

    run(story)


@pytest.mark.rule("B9", "A8")
def test_it_is_not_faster_than_told_and_goes_on_where_it_was_cut_short() -> None:
    async def story(cluster: SimCluster) -> None:
        loop = asyncio.get_running_loop()
        async with cluster.connect() as bk:
            async with await bk.create_ledger(password=b"pw") as writer:
                await append(cluster, writer, 1500, size=400)
            ledger = LedgerId(writer.id)
            bookie = (await bk.metadata(ledger)).last_fragment.ensemble[0]
            await loses_its_journal(cluster, bookie)
            begun = loop.time()
            await until(lambda: copied(cluster, bookie) >= 500)
            assert 500 <= copied(cluster, bookie) < 1500
            assert any(" of 1500 lost entries" in said for said in cluster.servers[bookie].health()["sentences"])
            node, before = cluster.node(bookie), copied(cluster, bookie)
            node.crash(power=False)
            node.restart()
            await cluster.wait_until_up(bookie)
            await until(lambda: not cluster.servers[bookie].engine.in_limbo)
            assert copied(cluster, bookie) + before <= 1500 + 300, "what is there is not copied again"
            assert loop.time() - begun > 2_000_000 / 200_000 - 4, "two bookies' lives may each be a second ahead"
            await cluster.check_acked()

    SimCluster(1, 4, completion_bytes_per_s=200_000).run(story)


def copied(cluster: SimCluster, bookie: str) -> float:
    return cluster.servers[bookie].metrics.counter("completion_entries_total").value


@pytest.mark.rule("B9")
def test_a_bookie_that_is_told_to_copy_nothing_says_so() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 10)
            bookie = (await bk.metadata(ledger)).last_fragment.ensemble[0]
            await loses_its_journal(cluster, bookie)
            await asyncio.sleep(100)
            server = cluster.servers[bookie]
            assert server.engine.in_limbo
            assert any("completion_bytes_per_s is 0" in said for said in server.health()["sentences"])

    SimCluster(1, 4, completion_bytes_per_s=0).run(story)


@pytest.mark.rule("B9", "W10a", "B5")
def test_a_disk_that_was_emptied_gets_back_what_its_closed_ledgers_had() -> None:
    """A bookie on an emptied disk could not say what it had, until an operator had it copied."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 60)
            bookie = (await bk.metadata(ledger)).last_fragment.ensemble[0]
            node = cluster.node(bookie)
            node.crash()
            cluster.lose_disk(bookie)
            await cluster.forget_cookie(bookie)
            node.restart()
            await cluster.wait_until_up(bookie)
            await until(lambda: cluster.servers[bookie].health()["ledgers_in_doubt"] == 0)
            assert holds(cluster, bookie, ledger) == set(range(60))
            await cluster.check_acked()

    run(story)


def test_a_part_of_a_copy_consists_of_the_entries_that_are_given() -> None:
    spec, striped = (
        QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2),
        QuorumSpec(ensemble_size=3, write_quorum=2, ack_quorum=2),
    )

    metadata = LedgerMetadata.create(spec, tuple(map(BookieId, "abc")), digest_type=DigestType.CRC32C)
    copy = copy_at(metadata, 0, 1)
    assert copy is not None
    part = PartialCopy.of(copy, (range(3, 8), range(20, 21)))
    assert (part.bookie, part.held(spec)) == ("b", 6)
    assert list(part.runs(spec, 3)) == [range(3, 6), range(6, 8), range(20, 21)]
    assert list(part.runs(striped, 4)) == [[3, 4, 5, 6], [7, 20]]
