"""Noticing that metadata were put back to an older state, while a process runs (M10)."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from bookkeeper.errors import ClusterMovedError, MetadataError, MetadataRolledBackError
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.records.lineage import COPIED, MOVED, Lineage, StoreMove
from bookkeeper.meta.records.rollback import RollbackCounter, RollbackWatch
from bookkeeper.meta.stores.memory import MemoryCluster, MemoryStore
from bookkeeper.testing import World
from tests.bookkeeper.meta.services import seams


async def cluster() -> tuple[MemoryCluster, Metadata, MemoryStore]:
    service = MemoryCluster()
    store = service.connect()
    await init_cluster_in(store, seams())
    return service, await Metadata.over(store, seams()), service.connect()


@pytest.mark.rule("M10")
async def test_an_older_state_is_found_by_a_look_and_stays_found() -> None:
    service, metadata, other = await cluster()
    backup = service.snapshot()
    await metadata.store.create("/a")
    await metadata.present.check()
    service.restore(backup)
    for _ in range(2):
        with pytest.raises(MetadataRolledBackError):
            await metadata.present.check()
    for number in range(5):
        await other.create(f"/{number}")
    assert other.last_transaction > metadata.store.last_transaction
    with pytest.raises(MetadataRolledBackError):
        await metadata.present.check_fresh()


@pytest.mark.rule("M10")
async def test_an_alarm_that_is_told_again_and_again_does_not_grow() -> None:
    """A bookie tries to register twice a second for as long as it is up; one error raised each time would keep the
    traceback, and the frames, of each."""
    service, metadata, _ = await cluster()
    backup = service.snapshot()
    await metadata.store.create("/a")
    service.restore(backup)
    for _ in range(5):
        with pytest.raises(MetadataRolledBackError):
            await metadata.present.check()
        with pytest.raises(MetadataRolledBackError):
            await metadata.store.create("/b")
    for alarm in (metadata.present.alarm, metadata.store.rolled_back):
        assert alarm is not None and len(traceback.extract_tb(alarm.__traceback__)) < 5


@pytest.mark.rule("M10")
async def test_who_was_connected_before_a_loss_was_accepted_ends_though_the_numbers_rose_again() -> None:
    """Transactions that were made since the restoration hide it from those who compare numbers alone."""
    _, metadata, other = await cluster()
    await metadata.present.check()
    await other.create(metadata.own(COPIED), Lineage((StoreMove("a loss", 1),)).encode(), parents=True)
    with pytest.raises(MetadataRolledBackError, match="start this process again"):
        await metadata.present.check()


@pytest.mark.rule("M10")
async def test_who_is_connected_to_a_place_that_was_left_ends() -> None:
    _, metadata, other = await cluster()
    await other.create(metadata.own(MOVED), b'{"to": "elsewhere"}', parents=True)
    with pytest.raises(ClusterMovedError, match="elsewhere"):
        await metadata.present.check()


@pytest.mark.rule("M10")
async def test_a_beacon_tells_an_older_state_by_what_it_had_counted() -> None:
    """ZooKeeper numbers transactions anew with each leader: after a restoration they may be higher than before."""
    service, metadata, other = await cluster()
    counter = RollbackCounter(metadata.store, metadata.own("seen", "b1"), metadata.present)
    await counter.check()
    await counter.count_up()
    backup = service.snapshot()
    await counter.count_up()
    await counter.check()
    assert (await other.get(metadata.own("seen", "b1"))).value == b"2"
    service.restore(backup)
    service.transaction += 1 << 32
    await metadata.store.check_not_rolled_back(metadata.store.last_transaction)
    with pytest.raises(MetadataRolledBackError, match="counted up to 2, and shows 1"):
        await counter.check()
    with pytest.raises(MetadataRolledBackError):
        await metadata.present.check()


@pytest.mark.rule("M10")
async def test_a_beacon_whose_count_is_above_what_was_remembered_is_taken_up() -> None:
    _, metadata, _ = await cluster()
    path = metadata.own("seen", "b1")
    counter, again = (RollbackCounter(metadata.store, path, metadata.present) for _ in range(2))
    for _ in range(3):
        await counter.count_up()
    again.count = 1
    await again.count_up()
    assert again.count == 4


@pytest.mark.rule("M10", "Z1")
def test_the_watch_tells_once_and_in_time_and_tells_doubt() -> None:
    async def main() -> None:
        service, metadata, _ = await cluster()
        store = metadata.store
        assert isinstance(store, MemoryStore)
        found: list[MetadataError] = []
        doubts: list[float] = []
        loop = asyncio.get_running_loop()
        watch = RollbackWatch(store, metadata.present, found.append, lambda: doubts.append(loop.time()))
        task = asyncio.create_task(watch.run())
        await asyncio.sleep(10)
        assert not doubts
        service.suspend(store)
        await asyncio.sleep(30)
        assert not found, "no answer is no older state"
        service.resume(store)
        await asyncio.sleep(10)
        assert len(doubts) == 1
        backup = service.snapshot()
        await store.create("/a")
        service.restore(backup)
        await asyncio.sleep(10)
        assert [type(error) for error in found] == [MetadataRolledBackError] and task.done()

    world = World(1)
    with world:
        world.run(main(), within_s=300)
