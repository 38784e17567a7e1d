"""What writers with chosen ids and with deferred sync live through, on production bookies in a simulated world."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bookkeeper.client.bookies import bookie_pool
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.write.advanced_handle import AdvancedHandle
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import (
    BookieFailedError,
    BookKeeperError,
    InvariantError,
    LedgerClosedError,
    LedgerFencedError,
)
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger.write.force_rounds import ForceRounds
from bookkeeper.storage.engine import Engine
from bookkeeper.testing.cluster import SimCluster

SEEDS = range(4)


def shuffled(cluster: SimCluster, first: int, count: int, distance: int = 12) -> list[int]:
    """Ids in an order in which each comes at most ``distance`` places too early or too late."""
    rng = cluster.world.rng
    return sorted(range(first, first + count), key=lambda entry: entry + rng.random() * distance)


async def append_shuffled(cluster: SimCluster, ledger: AdvancedHandle, first: int, count: int) -> None:
    async def one(entry_id: int) -> None:
        payload = b"entry %d" % entry_id
        cluster.acked(ledger.id, await ledger.append_at(entry_id, payload), payload)

    appends = []
    for entry_id in shuffled(cluster, first, count):
        appends.append(asyncio.ensure_future(one(entry_id)))
        await asyncio.sleep(0.002)
    await asyncio.gather(*appends)


@pytest.mark.rule("W2", "W5")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_bookie_killed_during_advanced_appends_is_replaced_and_the_callers_see_nothing(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(advanced=True) as ledger:
            await append_shuffled(cluster, ledger, 0, 20)
            victim = ledger.metadata.last_fragment.ensemble[seed % 3]
            cluster.world.loop.call_later(0.05, cluster.node(victim).crash)
            await append_shuffled(cluster, ledger, 20, 500)
            assert victim not in ledger.metadata.last_fragment.ensemble
            assert ledger.last_add_confirmed == 519
        await cluster.check_acked()

    SimCluster(seed, bookies=4).run(story)


@pytest.mark.rule("W9", "R11", "R14")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_fence_during_advanced_appends_ends_them_and_the_ledger_below_the_gap(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(advanced=True)
            await append_shuffled(cluster, ledger, 0, 20)
            above = [ledger.append_at_nowait(e, b"above the gap") for e in range(30, 40)]
            below = [asyncio.ensure_future(append_shuffled(cluster, ledger, 20, 5))]
            async with await other.open_ledger(ledger.id) as reader:
                assert 19 <= reader.last_add_confirmed <= 24
            ended: list[Any] = await asyncio.gather(*below, return_exceptions=True)
            if not isinstance(ended[0], LedgerFencedError):
                with pytest.raises(LedgerFencedError):
                    await ledger.append_at(25, b"late")
            ended = await asyncio.gather(*above, return_exceptions=True)
            assert {type(end) for end in ended} == {LedgerFencedError}
            with pytest.raises((LedgerFencedError, LedgerClosedError)):
                await ledger.close()
        await cluster.check_acked()

    SimCluster(seed).run(story)


async def write_and_force(cluster: SimCluster, ledger: WriteHandle, windows: int) -> None:
    """Append windows, force each, and note as promised what is forced; after that append one more window."""
    payloads: list[bytes] = []

    async def window() -> None:
        mine = [b"%d of window %d" % (i, len(payloads)) for i in range(7)]
        assert list(await ledger.append_many(mine)) == list(range(len(payloads), len(payloads) + 7))
        payloads.extend(mine)

    forced = 0
    for _ in range(windows):
        await window()
        end = await ledger.force() + 1
        for entry_id in range(forced, end):
            cluster.acked(ledger.id, EntryId(entry_id), payloads[entry_id])
        forced = end
        assert ledger.last_add_confirmed == len(payloads) - 1
    await window()
    assert ledger.last_add_confirmed == len(payloads) - 8


def power_goes(cluster: SimCluster, *bookies: str) -> None:
    for name in bookies:
        cluster.node(name).crash(power=True)


async def all_lose_power(cluster: SimCluster, shape: dict[str, Any]) -> LedgerId:
    """A writer forces some entries, writes some more, and then every machine of the cluster loses power."""
    for name in cluster.names:
        cluster.node(name).disk.sync_s = 0.02  # what is written stays undone for a while
    async with cluster.connect() as bk:
        ledger: WriteHandle = await bk.create_ledger(deferred_sync=True, **shape)
        await write_and_force(cluster, ledger, 3)
        power_goes(cluster, *cluster.names)
        with pytest.raises(BookKeeperError):
            await ledger.append(b"unknown")
            await ledger.force()
        await ledger.abandon()
    for name in cluster.names:
        cluster.node(name).restart()
    await cluster.wait_until_up()
    await asyncio.sleep(3)
    return ledger.id


SHAPES: list[dict[str, Any]] = [{}, {"write_quorum": 2}, {"ensemble": 2, "write_quorum": 2, "ack_quorum": 1}]


@pytest.mark.rule("W11", "L1", "R11")
@pytest.mark.parametrize("shape", SHAPES, ids=["3/3/2", "3/2/2", "2/2/1"])
@pytest.mark.parametrize("seed", SEEDS)
def test_when_all_machines_lose_power_what_was_forced_is_there(seed: int, shape: dict[str, Any]) -> None:
    async def story(cluster: SimCluster) -> None:
        ledger_id = await all_lose_power(cluster, shape)
        await cluster.check_acked()
        async with cluster.connect() as bk:
            assert 20 <= (await bk.metadata(ledger_id)).last_entry <= 28

    SimCluster(seed).run(story)


def _bookies_that_do_not_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "force", lambda self, ledger_id, callback: callback(None))


def _a_writer_that_takes_acks_for_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(self: ForceRounds, acknowledged: EntryId, length: int, now: float) -> int:
        self.forced, self.forced_length = acknowledged, length
        return asked(self, acknowledged, length, now)

    asked: Callable[..., int] = ForceRounds.request
    monkeypatch.setattr(ForceRounds, "request", ask)


@pytest.mark.rule("W11")
@pytest.mark.parametrize(
    "plant", [_bookies_that_do_not_sync, _a_writer_that_takes_acks_for_durable], ids=lambda plant: plant.__name__
)
def test_the_story_of_lost_power_finds_a_force_that_forces_nothing(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted bugs: with them some seed loses what was promised."""
    plant(monkeypatch)

    def finds_it(seed: int) -> bool:
        async def story(cluster: SimCluster) -> None:
            await all_lose_power(cluster, {"ensemble": 2, "write_quorum": 2, "ack_quorum": 1})
            await cluster.check_acked()

        try:
            SimCluster(seed).run(story)
        except InvariantError as error:
            assert "R11" in str(error) or "L1" in str(error)
            return True
        return False

    assert any(finds_it(seed) for seed in range(30))


@pytest.mark.rule("W11")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_bookie_lost_between_append_and_force_ends_the_writer_and_a_recovery_keeps_what_is_left(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(deferred_sync=True)
            await write_and_force(cluster, ledger, 2)
            written = ledger._writer.progress.last_acknowledged
            victim = ledger.metadata.last_fragment.ensemble[seed % 3]
            power_goes(cluster, victim)
            with pytest.raises(BookKeeperError):  # a silent death is noticed by force()'s time limit
                async with asyncio.timeout(60):
                    while True:
                        await ledger.append(b"unknown")
                        await ledger.force()
            cluster.node(victim).restart()
            await cluster.wait_until_up()
            await asyncio.sleep(6)
            with pytest.raises(BookieFailedError):
                await ledger.close()
            stored = await bk.metadata(ledger.id)
            assert (len(stored.fragments), stored.is_closed) == (1, False)
            async with await bk.open_ledger(ledger.id) as reader:
                assert reader.last_add_confirmed >= written  # two of three lost nothing
        await cluster.check_acked()

    SimCluster(seed, bookies=4).run(story)


@pytest.mark.rule("W11", "W9", "R11")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_writer_with_deferred_sync_is_fenced_by_a_recovery_and_loses_nothing_that_was_written(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(deferred_sync=True)
            await write_and_force(cluster, ledger, 2)
            async with await other.open_ledger(ledger.id) as reader:
                assert reader.last_add_confirmed == 20
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"late")
        await cluster.check_acked()

    SimCluster(seed).run(story)


@pytest.mark.rule("X34", "W10b")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_a_writer_and_a_reader_may_be_silent_for_long(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bookies close connections over which nothing comes. To a writer a lost connection is a bookie that may have
    crashed: it replaced them, or found nobody to replace them with, so it shows a sign of life. A reader makes another
    connection."""
    monkeypatch.setattr(bookie_pool, "SIGN_OF_LIFE_S", 10.0)

    def closed(cluster: SimCluster) -> int:
        return sum(server.metrics.counter("idle_connections_total").value for server in cluster.servers.values())

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(ClientConfig(protocol=protocol)) as bk:
            writer = await bk.create_ledger()
            ensemble = writer.metadata.last_fragment.ensemble
            standing: list[Any] = []
            for number in range(3):
                assert await writer.append(b"%d" % number) == number
                standing.append([bk.services.pool.ready(bookie) for bookie in ensemble])
                await asyncio.sleep(100)
            assert standing[0] == standing[1] == standing[2] and None not in standing[0]
            assert len(writer.metadata.fragments) == 1, "no bookie was replaced"
            await writer.close()
            async with await bk.open_ledger(writer.id) as reader:
                for _ in range(3):
                    assert [entry.payload async for entry in reader.read(0, 2)] == [b"0", b"1", b"2"]
                    await asyncio.sleep(100)
            assert closed(cluster) >= 3, "what nobody needs is closed"

    SimCluster(2, bookies=4, connection_idle_s=30.0).run(story, within_s=1e6)


@pytest.mark.rule("W10a", "W10b", "W6")
def test_a_writer_appends_nothing_to_bookies_that_took_the_place_of_its_own() -> None:
    """apache/bookkeeper#4812: the ledger was recovered and closed, then its bookies were replaced by new ones with
    empty disks at the same addresses. They knew of no fence, and acknowledged what is in no ledger."""

    async def story(cluster: SimCluster) -> None:
        bk = await cluster.new_client()
        ledger = await bk.create_ledger(ensemble=2, write_quorum=2, ack_quorum=2)
        for entry in range(3):
            cluster.acked(ledger.id, await ledger.append(b"%d" % entry), b"%d" % entry)
        members = (await bk.metadata(ledger.id)).fragments[-1].ensemble
        async with cluster.connect(node=cluster.world.node("other")) as other:
            await (await other.open_ledger(ledger.id)).close()
        for name in map(str, members):
            cluster.node(name).crash()
            await asyncio.sleep(0.1)
            await cluster.forget_cookie(name)
            cluster.lose_disk(name)
            cluster.node(name).restart()
            await cluster.wait_until_up(name)
        with pytest.raises((LedgerFencedError, LedgerClosedError)):
            await ledger.append(b"late")
        await bk.close()

    SimCluster().run(story)
