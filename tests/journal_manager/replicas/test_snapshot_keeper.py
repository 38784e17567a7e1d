"""Snapshots of a replica's state: offered by a standby, adopted or taken by the active replica."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from journal_manager import (
    CheckpointPolicy,
    Discard,
    EditLog,
    RequestTable,
    RetentionPolicy,
    capability,
    open_reader,
    open_snapshots,
    open_writer,
)
from journal_manager.backends.memory import MemoryHub
from journal_manager.read.edit_reader import read_runs
from journal_manager.replicas.program_state import ProgramState
from journal_manager.replicas.replica import Replica
from journal_manager.replicas.snapshot_keeper import SnapshotKeeper
from tests.journal_manager.replicas import Ledger
from tests.spark_wal.webhdfs.virtual import in_virtual_time


class Follower:
    """A replica that stands by, in the hands of the test."""

    def __init__(self, hub: MemoryHub, policy: CheckpointPolicy, keep: int = 1) -> None:
        self.hub, self.replica = hub, Replica()
        self.state = ProgramState(Ledger(), self.replica, RequestTable())
        opens_store = partial(open_snapshots, "mem:x", hub=hub)
        self.keeper = SnapshotKeeper(self.state, self.replica, opens_store, policy, RetentionPolicy(snapshots=keep))

    async def follow(self) -> None:
        async with await open_reader("mem:x", hub=self.hub) as reader:
            await self.state.replay(read_runs(reader, self.replica.applied + 1))


async def log_some(log: EditLog, first: int, last: int) -> None:
    for number in range(first, last + 1):
        await log.log(b"%d" % number)


async def kept_in(hub: MemoryHub) -> list[int]:
    async with await open_snapshots("mem:x", hub=hub) as store:
        return [info.at for info in await store.list()]


@in_virtual_time
async def test_a_standby_offers_what_is_due_and_the_active_replica_adopts_it_and_removes_the_one_before() -> None:
    hub = MemoryHub()
    async with await EditLog.open("mem:x", owner="a", hub=hub) as log:
        standby = Follower(hub, CheckpointPolicy(edits=10))
        await log_some(log, 1, 9)
        await standby.follow()
        assert not standby.keeper.is_due()
        await standby.keeper.offer()
        assert await log.adopt_snapshots() == (), "offered before it was due"
        await log_some(log, 10, 10)
        await standby.follow()
        assert standby.keeper.is_due() and not standby.keeper.is_due(active=True)
        await standby.keeper.offer()
        assert standby.keeper.newest == 10 and not standby.keeper.is_due()

        active = Follower(hub, CheckpointPolicy(check_s=1))
        keeping = asyncio.ensure_future(active.keeper.keep_up(log))
        await asyncio.sleep(1.5)
        assert await kept_in(hub) == [10] and active.keeper.newest == 10
        await log_some(log, 11, 20)
        await standby.follow()
        await standby.keeper.offer()
        await asyncio.sleep(1)
        assert await kept_in(hub) == [20], "the policy keeps one"
        first, *_ = await log.segments()
        assert first.first == 11, "the edits that the former one holds are still there"
        keeping.cancel()


@in_virtual_time
async def test_the_active_replica_takes_one_where_no_standby_does() -> None:
    hub = MemoryHub()
    async with await EditLog.open("mem:x", owner="a", hub=hub) as log:
        active = Follower(hub, CheckpointPolicy(seconds=10, active_factor=2, check_s=1), keep=2)
        await log_some(log, 1, 3)
        await active.follow()
        keeping = asyncio.ensure_future(active.keeper.keep_up(log))
        await asyncio.sleep(19.5)
        assert await kept_in(hub) == []
        await asyncio.sleep(2)
        assert await kept_in(hub) == [3]
        assert await active.keeper.checkpoint(log) is None, "there is no edit since"
        keeping.cancel()

    other = Follower(hub, CheckpointPolicy())
    await other.keeper.load()
    assert other.replica.applied == other.keeper.newest == 3


@in_virtual_time
@pytest.mark.rule("J10")
async def test_a_snapshot_that_was_discarded_does_not_put_the_next_one_off() -> None:
    """Its id was ahead of the journal, so that none was due until other edits had got that far."""
    hub = MemoryHub()
    standby = Follower(hub, CheckpointPolicy(edits=2), keep=5)
    async with await EditLog.open("mem:x", owner="a", hub=hub) as log:
        await log_some(log, 1, 3)
        await log.roll()
        await standby.follow()
        await log_some(log, 4, 9)
        await log.save_snapshot(9, [b"a state that is discarded"])
    await standby.keeper.offer()
    assert standby.keeper.newest == 9
    async with await open_writer("mem:x", hub=hub) as writer:
        await capability(writer, Discard).discard_from(4)  # type: ignore[type-abstract]
    assert not standby.keeper.is_due()
    await standby.keeper.refresh()
    assert standby.keeper.newest == 0 and standby.keeper.is_due()
    await standby.keeper.offer()
    async with await EditLog.open("mem:x", hub=hub) as log:
        assert [info.at for info in await log.adopt_snapshots()] == [3]
    await standby.keeper.refresh()
    assert standby.keeper.newest == 3
