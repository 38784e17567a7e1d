"""Bookies taken out of the cluster for good."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import IllegalOperationError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.replication.config import DecommissionConfig, DrainConfig
from bookkeeper.replication.decommissioning.decommission import DecommissionProgress, DecommissionStep, decommission
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, append, set_read_only, written
from tests.bookkeeper.replication.decommissioning.test_forget import known, stop

QUICK = DecommissionConfig(wait_s=5.0, poll_s=1.0)


def run(story: Story, bookies: int = 5, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


async def naming(bk: BookKeeper, bookie: str, ledgers: list[LedgerId]) -> list[LedgerId]:
    return [ledger for ledger in ledgers if bookie in (await bk.metadata(ledger)).bookies]


@pytest.mark.rule("A1", "A11")
def test_a_bookie_that_is_gone_is_drained_checked_and_forgotten() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await written(cluster, bk, 20) for _ in range(6)]
            held = await naming(bk, "b1", ledgers)
            assert held
            await bk.metadata_store.under_replication.mark(held[0], [BookieId("b1")], 1)
            await stop(cluster, bk, "b1")
            seen: list[tuple[DecommissionStep, int, int]] = []

            def show(progress: DecommissionProgress) -> None:
                seen.append((progress.step, progress.ledgers, progress.whole))

            done = await decommission(bk, ["b1"], QUICK, show)
            assert done.is_complete and done.forgotten == ["b1"] and not done.stuck and not done.running
            assert done.held == len(held) and sum(moved.entries for moved in done.moved) == 20 * len(held)
            assert [step for step, *_ in seen] == sorted((step for step, *_ in seen), key=list(DecommissionStep).index)
            assert seen[-1] == (DecommissionStep.FORGETS, len(held), len(held))
            assert await bk.metadata_store.under_replication.read(held[0]) is None
            assert "b1" not in await known(bk)
            await cluster.check_acked()

    run(story)


def test_a_writable_bookie_is_refused_in_the_words_of_drain_and_a_running_one_is_waited_for() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await written(cluster, bk, 20) for _ in range(6)]
            with pytest.raises(
                IllegalOperationError, match=r"b1 is writable: .* Make it read-only with `bk bookies read-only b1`"
            ):
                await decommission(bk, ["b1"], QUICK)
            await set_read_only(cluster, "b1")
            still = await decommission(bk, ["b1"], QUICK)
            assert not still.is_complete and still.running == ["b1"] and not still.stuck
            assert await naming(bk, "b1", ledgers) == [] and "b1" in await known(bk)
            again = asyncio.create_task(decommission(bk, ["b1"], QUICK))
            await asyncio.sleep(2)
            await stop(cluster, bk, "b1")
            done = await again
            assert done.is_complete and done.moved == [] and "b1" not in await known(bk)
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A8")
def test_what_was_cut_short_is_begun_again() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await written(cluster, bk, 20) for _ in range(8)]
            held = await naming(bk, "b1", ledgers)
            await stop(cluster, bk, "b1")
            begun = asyncio.Event()

            def show(progress: DecommissionProgress) -> None:
                if progress.drain.ledgers_done >= 1:
                    begun.set()

            config = DecommissionConfig(drain=DrainConfig(parallel=1), wait_s=5.0, poll_s=1.0)
            first = asyncio.create_task(decommission(bk, ["b1"], config, show))
            await begun.wait()
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            left = await naming(bk, "b1", ledgers)
            assert 0 < len(left) < len(held)
            done = await decommission(bk, ["b1"], config)
            assert done.is_complete and {moved.ledger_id for moved in done.moved} == set(left)
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A3", "A8")
def test_what_is_stuck_is_told_once_with_its_reason_and_nothing_is_forgotten() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw", ensemble=3)
            await append(cluster, ledger, 5)
            (victim, *_) = ledger.metadata.last_fragment.ensemble
            await ledger.abandon()
            await stop(cluster, bk, victim)
            told: list[str] = []
            done = await decommission(bk, [victim], QUICK, on_reason=told.append)
            assert not done.is_complete and [stuck.ledger_id for stuck in done.stuck] == [ledger.id]
            assert told == [str(done.stuck[0])] and "it is open" in told[0]
            assert victim in await known(bk)
            config = DecommissionConfig(drain=DrainConfig(recover_open=True, grace_ms=1000), wait_s=5.0, poll_s=1.0)
            done = await decommission(bk, [victim], config)
            assert done.is_complete and done.recovered == [ledger.id]
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A7")
def test_it_is_not_forgotten_while_a_ledger_that_it_held_is_not_whole() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 10, ensemble=3)
            victim, other, _ = sorted((await bk.metadata(ledger)).bookies)
            await stop(cluster, bk, victim)
            cluster.node(other).crash()
            await asyncio.sleep(5)
            told: list[str] = []
            done = await decommission(bk, [victim], QUICK, on_reason=told.append)
            assert done.moved and not done.is_complete and other in told[-1]
            assert victim in await known(bk)
            cluster.node(other).restart()
            await cluster.wait_until_up(other)
            bk.services.pool.forgive(BookieId(other))
            assert (await decommission(bk, [victim], QUICK)).is_complete

    run(story)


@pytest.mark.rule("A11", "G8")
def test_copies_of_deleted_ledgers_hold_it_up_until_they_are_given_up() -> None:
    """Cause: nothing looked at ledgers that are deleted and can still be brought back."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 10)
            (bookie, *_) = sorted((await bk.metadata(ledger)).bookies)
            await bk.delete_ledger(ledger, grace_s=86_400)
            await stop(cluster, bk, bookie)
            said: list[str] = []
            held_up = await decommission(bk, [bookie], QUICK, on_reason=said.append)
            assert not held_up.is_complete and bookie in await known(bk)
            assert [each.ledger_id for each in held_up.stuck] == [ledger]
            assert len(said) == 1 and "it is deleted, can be brought back until" in said[0]
            done = await decommission(bk, [bookie], replace(QUICK, give_up_deleted=True))
            assert done.is_complete and done.given_up == [ledger] and not done.stuck

    run(story)


@pytest.mark.rule("A8", "A11")
@pytest.mark.parametrize("closed", [True, False])
def test_ledgers_without_an_entry_hold_nothing_up(closed: bool) -> None:
    """What apache/bookkeeper#3220 and #3692 tell: repair passed them over, and they named the bookie for ever."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            made = [await bk.create_ledger(password=b"pw", ensemble=5, write_quorum=2, ack_quorum=2) for _ in range(3)]
            for ledger in made:
                await (ledger.close() if closed else ledger.abandon())
            await cluster.add_bookie("b6")
            await stop(cluster, bk, "b1")
            config = DecommissionConfig(drain=DrainConfig(recover_open=True, grace_ms=1000), wait_s=5.0, poll_s=1.0)
            done = await decommission(bk, ["b1"], config)
            assert done.is_complete and not done.stuck
            assert await naming(bk, "b1", [LedgerId(ledger.id) for ledger in made]) == []

    run(story)


@pytest.mark.rule("A8")
def test_a_ledger_of_which_nothing_is_left_ends_it_and_the_others_are_moved() -> None:
    """What apache/bookkeeper#2162 and #3887 tell: it said for ever that one ledger is left."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            alone = await written(cluster, bk, 5, ensemble=1, write_quorum=1, ack_quorum=1)
            (gone,) = (await bk.metadata(alone)).bookies
            others = [await written(cluster, bk, 5) for _ in range(4)]
            held = await naming(bk, gone, others)
            await stop(cluster, bk, gone)
            done = await decommission(bk, [gone], QUICK)
            assert not done.is_complete and [stuck.ledger_id for stuck in done.stuck] == [alone]
            assert held and await naming(bk, gone, others) == []
            assert gone in await known(bk), "nobody forgets what may come back"

    run(story)
