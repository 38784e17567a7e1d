"""Journals on production bookies in a simulated world: lost bookies, frozen and crashed writers, by seed."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import BookKeeper
from bookkeeper.testing.cluster import SimCluster
from journal_manager import (
    EditLog,
    JournalFailedError,
    JournalFencedError,
    JournalUnavailableError,
    TxId,
    open_reader,
    open_snapshots,
    read_ops,
)

SEEDS = range(1, 6)


async def open_log(client: BookKeeper, owner: str = "a") -> EditLog:
    return await EditLog.open("bk:edits", owner=owner, client=client)


async def bodies(log: EditLog, start: int = 1) -> list[bytes]:
    return [op.body async for op in log.read(TxId(start))]


@pytest.mark.rule("C4", "C8")
def test_losing_one_of_three_stops_neither_appending_nor_rolling_nor_taking_over() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client, cluster.connect() as other:
            log = await open_log(client)
            await log.log(b"1")
            cluster.node("b2").crash()
            await asyncio.sleep(3)
            await log.log(b"2")
            await log.roll()
            await log.log(b"3")
            await log.save_snapshot(3, [b"123"])
            again = await open_log(other, "b")
            assert again.recovery.last_txid == 3
            await again.log(b"4")
            await again.roll()
            assert await bodies(again) == [b"1", b"2", b"3", b"4"]
            found = await (await open_snapshots("bk:edits", client=other)).load()
            assert found is not None and found[1] == b"123"

    SimCluster(seed=1).run(story)


@pytest.mark.rule("C5")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_frozen_writer_that_wakes_up_is_told_and_changes_nothing(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        zombie = cluster.world.node("zombie")
        acknowledged: list[bytes] = []
        ends: list[str] = []

        async def write(node_seams: object) -> None:
            client = await cluster.new_client(node=zombie)
            log = await open_log(client, "zombie")
            try:
                for i in range(100_000):
                    body = b"z%d" % i
                    await log.log(body)
                    acknowledged.append(body)
                    await asyncio.sleep(0.002)
            except JournalFencedError as error:
                ends.append(f"fenced by {error.by.owner if error.by else '?'}")

        zombie.start(write)
        await asyncio.sleep(0.5 + seed / 100)
        zombie.freeze()
        async with cluster.connect() as client:
            log = await open_log(client, "successor")
            await log.log(b"mine")
            before = await bodies(log)
            count = len(acknowledged)
            zombie.thaw()
            await asyncio.sleep(2)
            assert ends == ["fenced by successor"]
            await log.log(b"mine too")
            found = await bodies(log)
            assert found == [*before, b"mine too"]
            assert len(acknowledged) <= count + 1, "at most the one whose reply was on its way"
            assert [body for body in found if body.startswith(b"z")][: len(acknowledged)] == acknowledged
            assert len(before) <= len(acknowledged) + 2

    SimCluster(seed=seed).run(story)


@pytest.mark.rule("J9")
@pytest.mark.parametrize("seed", range(1, 4))
def test_a_snapshot_and_the_edits_after_it_are_the_state_whoever_saved_it(seed: int) -> None:
    """A writer is frozen anywhere, also while it saves; a standby offers; every snapshot that is listed is right."""

    async def story(cluster: SimCluster) -> None:
        zombie = cluster.world.node("zombie")
        ends: list[str] = []

        async def write_on(client: BookKeeper, name: str) -> None:
            log = await open_log(client, name)
            state = await bodies(log)
            try:
                for i in range(100_000):
                    state.append(b"%s %d, " % (name.encode(), i))
                    txid = await log.log(state[-1])
                    assert txid == len(state)
                    if i % 3 == 2:
                        await log.save_snapshot(txid, state)
                    await asyncio.sleep(0.01)
            except JournalFencedError:
                ends.append(name)

        async def be_zombie(seams: object) -> None:
            await write_on(await cluster.new_client(node=zombie), "zombie")

        zombie.start(be_zombie)
        await asyncio.sleep(0.5 + seed / 100)
        zombie.freeze()
        async with cluster.connect() as client:
            reader, store = (
                await open_reader("bk:edits", client=client),
                await open_snapshots("bk:edits", client=client),
            )
            seen = [op.body async for op in read_ops(reader, 1)]
            await store.offer(len(seen), seen)
            successor = asyncio.create_task(write_on(client, "successor"))
            await asyncio.sleep(0.3)
            zombie.thaw()
            await asyncio.sleep(1)
            assert ends == ["zombie"]
            log = await open_log(client, "last")
            await asyncio.wait_for(successor, 30)
            await log.adopt_snapshots()
            state = await bodies(log)
            infos = await store.list()
            assert len(infos) > 3
            for info in infos:
                assert info.at <= log.durable_txid
                assert b"".join([chunk async for chunk in store.read(info.at)]) == b"".join(state[: info.at])

    SimCluster(seed=seed).run(story)


@pytest.mark.rule("C1", "C2", "C4", "C7", "C8")
@pytest.mark.parametrize("seed", SEEDS)
def test_writers_that_crash_lose_nothing_they_acknowledged(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        acknowledged: dict[int, bytes] = {}
        for life in range(4):
            node = cluster.world.node(f"writer{life}")

            async def write(seams: object, life: int = life, node: object = node) -> None:
                client = await cluster.new_client(node=node)  # type: ignore[arg-type]
                log = await open_log(client, f"life {life}")
                for i in range(100_000):
                    waiters = [log.log(b"%d %d %d" % (life, i, j)) for j in range(3)]
                    for j, waiter in enumerate(waiters):
                        txid = await waiter
                        assert acknowledged.setdefault(txid, b"%d %d %d" % (life, i, j)) == b"%d %d %d" % (life, i, j)
                    if i % 7 == 6:
                        await log.roll()

            node.start(write)
            await asyncio.sleep(0.3 + 0.037 * seed * (life + 1))
            node.crash()
        async with cluster.connect() as client:
            log = await open_log(client, "last")
            found = {op.txid: op.body async for op in log.read(TxId(1))}
            assert list(found) == list(range(1, log.recovery.last_txid + 1))
            assert acknowledged and all(found[TxId(txid)] == body for txid, body in acknowledged.items())

    SimCluster(seed=seed).run(story)


def test_without_an_ack_quorum_edits_end_as_unknown_and_the_journal_opens_when_bookies_are_back() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            log = await open_log(client)
            await log.log(b"1")
            for name in ("b1", "b2"):
                cluster.node(name).crash()
            with pytest.raises(JournalFailedError):
                await log.log(b"2")
            await log.abort()
            for name in ("b1", "b2"):
                cluster.node(name).restart()
            await cluster.wait_until_up()
            again = await open_log(client)
            assert (await bodies(again))[0] == b"1"
            await again.log(b"3")
            await again.close()

    SimCluster(seed=3).run(story)


def test_while_the_metadata_store_is_away_edits_go_on_and_a_roll_waits() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            log = await open_log(client)
            await log.log(b"1")
            cluster.store.begin_outage()
            await log.log(b"2")
            rolling = asyncio.create_task(log.roll())
            await asyncio.sleep(1)
            assert not rolling.done()
            cluster.store.end_outage()
            final = await rolling
            assert final is not None and final.last == 2
            await log.log(b"3")
            assert await bodies(log) == [b"1", b"2", b"3"]

    SimCluster(seed=2).run(story)


def test_a_store_that_stays_away_ends_the_roll_with_its_reason_and_nothing_is_lost() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            log = await open_log(client)
            await log.log(b"1")
            cluster.store.begin_outage()
            with pytest.raises(JournalUnavailableError):
                await log.roll()
            with pytest.raises(JournalFailedError):
                log.log(b"2")
            cluster.store.end_outage()
            await log.abort()
        async with cluster.connect() as client:
            again = await open_log(client)
            assert await bodies(again) == [b"1"]
            await again.log(b"2")

    SimCluster(seed=2).run(story)
