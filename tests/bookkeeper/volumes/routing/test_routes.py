"""To which volume a call goes, and what is refused."""

from __future__ import annotations

import asyncio
import errno

import pytest

from bookkeeper import wire
from bookkeeper.errors import (
    BookieFailedError,
    DataUnknownError,
    DiskFullError,
    LedgerFencedError,
    NoSuchLedgerError,
)
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.engine import Engine, EngineState
from bookkeeper.testing.world.disks import SimDisks
from bookkeeper.volumes.after_all import PartlyFailedError
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import add, named, status
from tests.bookkeeper.storage.workload import KEY
from tests.bookkeeper.volumes.doors import Door
from tests.bookkeeper.volumes.stories import (
    DirectoriesCluster,
    Writers,
    run_bookie,
    until,
    volumes_of,
)


def _entry(ledger: LedgerId, entry_id: int) -> bytes:
    head = (ledger, entry_id, entry_id - 1, entry_id)
    return b"".join(number.to_bytes(8, "big", signed=True) for number in head) + b"digest"


def test_ledgers_are_spread_and_found_again() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 6)
            await asyncio.sleep(2)
            await writers.stop()
        for name in cluster.names:
            placements = cluster.volumes(name).placements
            counts = [placements.count(number) for number in (1, 2, 3)]
            assert min(counts) > 0 and max(counts) - min(counts) <= 2, counts
            before = {ledger: placements.volume_of(ledger) for ledger in cluster.volumes(name).ledgers()}
            cluster.node(name).crash()
            cluster.node(name).restart()
            await cluster.wait_until_up(name)
            again = cluster.volumes(name)
            assert {ledger: again.placements.volume_of(ledger) for ledger in again.ledgers()} == before
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=3)
    cluster.run(lambda _: story(cluster))


def test_b3_a_ledger_whose_fence_was_lost_takes_no_regular_add_ever_again() -> None:
    """Its writer was cut off while it was recovered; this bookie has lost the fence, and has the entries again."""

    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            writer = await bk.create_ledger(ensemble=3, write_quorum=3, ack_quorum=2, password=b"")
            for at in range(5):
                cluster.acked(writer.id, await writer.append(b"%d" % at), b"%d" % at)
            await (await other.open_ledger(writer.id, b"")).close()
            hurt = next(name for name in cluster.names if cluster.servers[name].engine.has(writer.id))
            volumes = cluster.volumes(hurt)
            number = volumes.placements.volume_of(writer.id)
            assert number is not None
            cluster.pull_out(hurt, f"/disk{number}")
            volumes.members.lose(number, "a test has pulled it out")
            assert volumes.is_fenced(writer.id)
            entry = _entry(writer.id, 5)
            with pytest.raises(BookieFailedError, match="has failed"):
                volumes.append_entry(writer.id, KEY, entry)
            await until(lambda: not volumes.suspects, within_s=300)
            assert volumes.has(writer.id)
            for _ in range(2):
                volumes = cluster.volumes(hurt)
                with pytest.raises(LedgerFencedError, match="was on a disk that was lost"):
                    volumes.append_entry(writer.id, KEY, entry)
                cluster.node(hurt).crash()
                cluster.node(hurt).restart()
                await cluster.wait_until_up(hurt)
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=11, bookies=3)
    cluster.run(lambda _: story(cluster), within_s=2000)


@pytest.mark.rule("B12")
def test_of_a_lost_ledger_nothing_is_denied_forced_or_added() -> None:
    door = Door()
    door.acked(1, 0, 1)
    door.acked(2, 0)
    number = door.volumes.placements.volume_of(1)
    assert number == 1 and door.volumes.placements.volume_of(2) == 2
    door.add(1, 2)
    door.volumes.start_writing()  # deferred: answered, and not durable
    door.volumes.members.lose(1, "burnt")
    for here in (door, None):
        if here is None:
            door.pump()
            here = door.again()
        with pytest.raises(BookieFailedError, match="the disk with ledger 1 has failed"):
            here.add(1, 3)
        with pytest.raises(BookieFailedError):
            here.volumes.set_explicit_lac(LedgerId(1), KEY, 1, b"", lambda error: None)
        assert isinstance(here.done(lambda done: here.volumes.force(LedgerId(1), done)), BookieFailedError)  # noqa: B023
        assert isinstance(here.read(1, 0), DataUnknownError)
        assert isinstance(here.read(1, -1), DataUnknownError)
        assert isinstance(here.read_batch(1, 0), DataUnknownError)
        for ask in (here.volumes.lac, here.volumes.entries, here.volumes.last_entry, here.volumes.explicit_lac):
            with pytest.raises(DataUnknownError):
                ask(LedgerId(1))
        assert here.volumes.is_fenced(LedgerId(1))
        assert here.volumes.suspects == {1} and here.volumes.suspicion(LedgerId(1)) > 0
        here.acked(2, 5)
        assert here.done(lambda done: here.volumes.force(LedgerId(2), done)) is None  # noqa: B023
    assert 1 not in set(door.volumes.ledgers())


def test_a_new_ledger_goes_where_there_is_space() -> None:
    """Also if the volumes with space have more ledgers; if none has space, one must say so."""
    door = Door()
    door.acked(1, 0)
    door.disk.faults["write", "/d1/"] = OSError(errno.ENOSPC, "no space")
    door.add(1, 1)
    door.done(door.volumes.when_durable)
    assert door.engine(1).state is EngineState.READ_ONLY
    for ledger in range(2, 6):
        door.acked(ledger, 0)
    assert door.volumes.placements.ledgers_on(2) == [2, 3, 4, 5]
    target = door.volumes.best_target(2)
    assert target is None, "nothing is moved to a full disk"


def test_a_new_ledger_goes_to_no_volume_that_would_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in doubt of everything counts every ledger as fenced; only if there is no other it must say so."""
    door = Door()
    doubtful = {id(door.engine(1))}
    monkeypatch.setattr(Engine, "takes_new_ledgers", property(lambda self: id(self) not in doubtful))
    door.acked(1, 0)
    door.acked(2, 0)
    assert door.volumes.placements.ledgers_on(2) == [1, 2]
    takes = [door.volumes.takes_new_ledgers]
    doubtful.add(id(door.engine(2)))
    takes.append(door.volumes.takes_new_ledgers)
    assert takes == [True, False]
    door.acked(3, 0)


def test_of_a_deleted_ledger_a_negative_is_honest_whatever_is_in_doubt() -> None:
    door = Door()
    door.acked(1, 0)
    door.acked(2, 0)
    assert door.done(lambda done: door.volumes.collect({LedgerId(1)}, done)) is None
    door.volumes.doubt({1, 5})
    assert isinstance(door.read(1, 0), NoSuchLedgerError)
    assert isinstance(door.read(5, 0), DataUnknownError)
    assert isinstance(door.read(6, 0), NoSuchLedgerError)


def test_a_deleted_ledger_is_made_anew_on_no_volume() -> None:
    """Only one knows that it was deleted; a new ledger would go to the other."""
    door = Door()
    door.acked(1, 0)
    assert door.done(lambda done: door.engine(1).collect({LedgerId(1)}, done)) is None
    door = door.again()
    door.acked(2, 0)
    assert door.volumes.placements.ledgers_on(1) == [2] and 1 not in door.engine(2).dropped
    with pytest.raises(LedgerFencedError, match="ledger 1 was deleted"):
        door.add(1, 1)
    assert door.fenced(1) is None and door.volumes.is_fenced(LedgerId(1))
    assert door.volumes.placements.volume_of(1) is None


def test_while_places_cannot_be_written_nothing_more_is_placed() -> None:
    """So what waits for space is bounded; what is placed already goes on."""
    door = Door()
    door.acked(1, 0)
    door.disk.faults["write", "placements"] = OSError(errno.ENOSPC, "full")
    door.add(2, 0)
    error = door.done(door.volumes.when_durable)
    assert isinstance(error, PartlyFailedError) and error.ledgers == {2}
    with pytest.raises(DiskFullError, match=r"placements cannot be written for now: .*; free some space there"):
        door.add(3, 0)
    assert isinstance(door.fenced(4), DiskFullError), "not even the room that was kept can be written"
    assert [door.volumes.placements.volume_of(ledger) for ledger in (3, 4)] == [None, 1]
    door.acked(1, 1)
    door.disk.faults.clear()
    door.volumes.check_space()
    door.pump()
    door.acked(3, 0)
    door.acked(2, 1)


@pytest.mark.rule("K26", "B2")
def test_when_only_the_bookies_own_directory_is_full_fences_and_recovery_adds_go_on() -> None:
    """Cause: where a ledger lies is written there, and nothing was kept for those that a recovery needs."""

    async def main(cluster: Cluster) -> None:
        disk = cluster.node.disk
        assert isinstance(disk, SimDisks)
        metadata = await cluster.up()
        old, *ledgers = [(await metadata.ledgers.create(named(BOOKIE)))[0] for _ in range(2000)]
        assert await status(cluster, add(old, 0)) is Status.OK
        disk.limit("", 0)
        taken = 0
        while (answer := await status(cluster, add(ledgers[taken], 0))) is Status.OK:
            taken += 1
        assert answer is Status.READ_ONLY and taken < 1400
        for at, ledger in enumerate(ledgers[taken : taken + 600]):
            fence = wire.ReadEntry(ledger, EntryId(0), KEY, fence=True)
            request, expected = (add(ledger, 0, recovery=True), Status.OK) if at % 2 else (fence, Status.NO_ENTRY)
            assert await status(cluster, request) is expected
        assert await status(cluster, add(old, 1)) is Status.OK
        assert await status(cluster, add(ledgers[-1], 0)) is Status.READ_ONLY
        cluster.node.crash()
        disk.limit("", None)
        await cluster.again()
        volumes = volumes_of(cluster)
        assert all(volumes.is_fenced(ledger) for ledger in ledgers[taken : taken + 600 : 2])
        assert all(volumes.has(ledger) for ledger in ledgers[taken + 1 : taken + 600 : 2])
        assert await status(cluster, add(ledgers[-1], 0)) is Status.OK

    run_bookie(main, mounts=["/d1", "/d2"])
