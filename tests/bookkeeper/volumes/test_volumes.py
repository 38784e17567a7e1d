"""Several ledger directories in one bookie: found again, lost, added, emptied, while writers write."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.errors import (
    BookieFailedError,
    BookKeeperError,
    CookieError,
    DataUnknownError,
    DiskFullError,
    LedgerFencedError,
    NoSuchEntryError,
)
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.engine import EngineState
from bookkeeper.storage.results import Done
from bookkeeper.volumes import Volumes
from bookkeeper.volumes.joined import PartlyFailedError, until_done
from bookkeeper.volumes.ledger_moves import LedgerMove
from bookkeeper.volumes.volume_list import VolumeList, VolumeState
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster
from tests.bookkeeper.bookie.cluster import run as run_one
from tests.bookkeeper.bookie.identity.test_suspect_ledgers import add, change, named, status
from tests.bookkeeper.storage.workload import KEY, make_entry
from tests.bookkeeper.volumes.doors import HOME, Door
from tests.bookkeeper.volumes.stories import DISKS, DirectoriesCluster, Writers, directories_of, until


async def _says(text: str) -> None:
    pass


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
            await cluster.until_up(name)
            again = cluster.volumes(name)
            assert {ledger: again.placements.volume_of(ledger) for ledger in again.ledgers()} == before
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=3)
    cluster.run(lambda _: story(cluster))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.rule("B12")
def test_a_disk_that_fails_takes_no_acknowledged_entry_and_no_writer_with_it(seed: int) -> None:
    """B12: the other disks serve on; the lost ledgers become whole on them; put back empty, the directory is used."""

    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 8)
            await asyncio.sleep(1)
            volumes = cluster.volumes("b1")
            on_it = set(volumes.placements.ledgers_on(2))
            cluster.pull_out("b1", "/disk2")
            await until(lambda: directories_of(cluster.servers["b1"])["/disk2"] == "lost")
            assert on_it <= set(volumes.placements.lost) | set(volumes.ledgers())
            assert volumes.state is EngineState.WRITABLE
            await asyncio.sleep(1)
            cluster.put_back_empty("b1", "/disk2")
            directories = cluster.servers["b1"].ledger_directories
            assert directories is not None
            assert await directories.add("/disk2", "/disk2") == 4
            await until(lambda: volumes.placements.count(4) > 0)
            await writers.stop()
            await until(lambda: not volumes.suspects, within_s=300)
            cluster.node("b1").crash()
            cluster.node("b1").restart()
            await cluster.until_up("b1")
            assert directories_of(cluster.servers["b1"]) == {"/disk1": "used", "/disk3": "used", "/disk2": "used"}
            again = cluster.volumes("b1")
            assert not again.suspects
            for ledger in on_it:
                assert again.entries(ledger), f"ledger {ledger} is not here again"
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=seed)
    cluster.run(lambda _: story(cluster), within_s=2000)


@pytest.mark.parametrize("milliseconds", [0, 1, 5, 20, 80])
@pytest.mark.rule("K35")
def test_a_loss_is_remembered_however_soon_a_crash_follows(milliseconds: int) -> None:
    """No negative is given about a lost ledger, in this life or the next (B5), until its copy is whole."""

    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 6)
            await asyncio.sleep(1)
            cluster.pull_out("b1", "/disk2")
            await asyncio.sleep(milliseconds / 1000)
            cluster.node("b1").crash()
            cluster.node("b1").restart()
            await cluster.until_up("b1")
            assert directories_of(cluster.servers["b1"])["/disk2"] == "lost"
            await writers.stop()
            await until(lambda: not cluster.volumes("b1").suspects, within_s=300)
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=milliseconds)
    cluster.run(lambda _: story(cluster), within_s=2000)


def test_the_last_disk_takes_the_bookie_with_it() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 4)
            await asyncio.sleep(0.5)
            server = cluster.servers["b1"]
            for place in DISKS:
                cluster.pull_out("b1", place)
            assert "the last ledger directory" in await server.run_until_failure()
            await writers.stop()

    cluster = DirectoriesCluster(seed=5)
    cluster.run(lambda _: story(cluster))


def test_the_last_disk_is_tried_again_by_the_next_start() -> None:
    """One error of the last disk costs a restart, not the bookie: what is on it is not given up."""

    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 4)
            await asyncio.sleep(0.5)
            server = cluster.servers["b1"]
            for place in DISKS:
                cluster.pull_out("b1", place)
            await server.run_until_failure()
            served = [place for place, state in directories_of(server).items() if state == "used"]
            assert len(served) == 1
            cluster.node("b1").disk.faults.clear()
            cluster.node("b1").crash(power=False)
            cluster.node("b1").restart()
            await cluster.until_up("b1")
            assert directories_of(cluster.servers["b1"])[served[0]] == "used"
            await writers.stop()
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=5)
    cluster.run(lambda _: story(cluster))


@pytest.mark.rule("K35")
def test_who_is_told_that_a_directory_is_drained_may_take_its_disk_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list has it as drained by then, whatever a power cut leaves."""

    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 4)
            await asyncio.sleep(0.5)
            server, node = cluster.servers["b1"], cluster.node("b1")
            assert server.ledger_directories is not None

            volumes = cluster.volumes("b1")
            set_state = volumes.set_state

            def slow(number: int, state: VolumeState, callback: Done) -> None:
                node.disk.sync_s = 1.0 if state is VolumeState.DRAINED else 0.0001
                set_state(number, state, callback)

            async def says(_text: str) -> None:
                pass

            monkeypatch.setattr(volumes, "set_state", slow)
            await server.ledger_directories.drain("/disk2", says)
            surviving = node.disk.surviving("/data/volumes")
            assert surviving is not None
            entry = VolumeList.decode(surviving, "volumes").at("/disk2")
            assert entry is not None and entry.state is VolumeState.DRAINED
            node.disk.sync_s = 0.0001
            await writers.stop()
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=3)
    cluster.run(lambda _: story(cluster))


def test_a_directory_is_added_while_writers_write() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 4)
            await asyncio.sleep(0.5)
            cluster.node("b1").disk.make_directories("/disk4")
            server = cluster.servers["b1"]
            assert server.ledger_directories is not None
            await server.ledger_directories.add("/disk4", "/disk4")
            await asyncio.sleep(1)
            await writers.stop()
            assert cluster.volumes("b1").placements.count(4) > 0
            cluster.dirs_of["b1"] = (*DISKS, "/disk4")
            cluster.node("b1").crash()
            cluster.node("b1").restart()
            await cluster.until_up("b1")
            assert directories_of(cluster.servers["b1"])["/disk4"] == "used"
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=6)
    cluster.run(lambda _: story(cluster))


def test_a_directory_in_use_that_is_not_configured_any_more_ends_the_start() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        cluster.dirs_of["b1"] = DISKS[:2]
        cluster.node("b1").crash()
        cluster.node("b1").restart()
        main = cluster.node("b1").main
        assert main is not None
        with pytest.raises(CookieError, match=r"/disk3 holds ledgers of this bookie and is not among its ledger_dirs"):
            await main

    cluster = DirectoriesCluster(seed=7, bookies=1)
    cluster.run(lambda _: story(cluster))


def test_a_directory_that_is_empty_though_it_was_used_ends_the_start() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        cluster.node("b1").crash()
        cluster.put_back_empty("b1", "/disk3")
        cluster.node("b1").restart()
        main = cluster.node("b1").main
        assert main is not None
        with pytest.raises(CookieError, match="/disk3 is empty, but ledgers of this bookie were on it: mount its disk"):
            await main

    cluster = DirectoriesCluster(seed=8, bookies=1)
    cluster.run(lambda _: story(cluster))


def test_a_disk_that_does_not_work_at_the_start_is_lost() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 4)
            await asyncio.sleep(1)
            await writers.stop()
            lost = set(cluster.volumes("b1").placements.ledgers_on(3))
            cluster.node("b1").crash()
            cluster.pull_out("b1", "/disk3")
            cluster.node("b1").restart()
            await cluster.until_up("b1")
            volumes = cluster.volumes("b1")
            assert directories_of(cluster.servers["b1"])["/disk3"] == "lost"
            assert lost
            await until(lambda: not volumes.suspects, within_s=300)
            assert lost <= set(volumes.ledgers())
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=9)
    cluster.run(lambda _: story(cluster), within_s=2000)


def test_a_bookie_with_one_directory_grows() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        async with cluster.connect() as bk:
            writers = Writers(cluster, bk, 3)
            await asyncio.sleep(1)
            await writers.stop()
            before = set(cluster.servers["b1"].engine.ledgers())
            cluster.node("b1").crash()
            cluster.grown["b1"] = {
                "ledger_dirs": ("/data/ledgers", "/disk2"),
                "journal_dirs": ("/data/journal", "/disk2"),
            }
            cluster.node("b1").restart()
            await cluster.until_up("b1")
            volumes = cluster.volumes("b1")
            assert set(volumes.placements.ledgers_on(1)) == before
            writers = Writers(cluster, bk, 3)
            await asyncio.sleep(1)
            await writers.stop()
            assert volumes.placements.count(2) > 0
            cluster.node("b1").crash()
            cluster.node("b1").restart()
            await cluster.until_up("b1")
            assert before <= set(cluster.volumes("b1").ledgers())
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=10, bookies=3, ledger_dirs=())
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
            volumes.lose(number, "a test has pulled it out")
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
                await cluster.until_up(hurt)
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=11, bookies=3)
    cluster.run(lambda _: story(cluster), within_s=2000)


def _entry(ledger: LedgerId, entry_id: int) -> bytes:
    head = (ledger, entry_id, entry_id - 1, entry_id)
    return b"".join(number.to_bytes(8, "big", signed=True) for number in head) + b"digest"


# -- the door alone, over a disk that remembers everything ---------------------------------------------------------


def moving(door: Door, ledger: int) -> LedgerMove:
    """A ledger that was copied to another volume; the move is not recorded yet."""
    source = door.volumes.placements.volume_of(ledger)
    target = door.volumes.best_target(source or 0)
    assert target is not None
    move = door.volumes.begin_move(LedgerId(ledger), target)
    for run in move.source.engine.entries(LedgerId(ledger)):
        for entry in range(run.first, run.first + run.count):
            target.engine.append_entry(LedgerId(ledger), KEY, make_entry(ledger, entry), recovery=True)
    assert door.done(lambda done: door.volumes.moves.wait_for_both(move, done)) is None
    return move


def begin(door: Door, what: str, done: Done) -> None:
    """Begin something about ledger 1."""
    ledger = LedgerId(1)
    if what == "fence":
        return door.volumes.fence(ledger, KEY, done)
    if what == "explicit LAC":
        return door.volumes.set_explicit_lac(ledger, KEY, 5, b"lac", done)
    door.add(1, 0)
    if what == "add":
        return door.volumes.when_durable(done)
    door.volumes.start_writing()
    return door.volumes.force(ledger if what == "force" else LedgerId(-1), done)


@pytest.mark.parametrize("what", ["add", "fence", "explicit LAC", "force", "force of all"])
@pytest.mark.rule("K35")
def test_nothing_is_answered_before_the_place_of_a_new_ledger_is_durable(what: str) -> None:
    door, answers = Door(), list[BaseException | None]()
    door.disk.ops.clear()
    begin(door, what, answers.append)
    assert door.volumes.placements.volume_of(1) == 1
    while not answers:
        assert door.workers.step(), "it hangs"
    assert answers == [None]
    assert [op.path for op in door.disk.ops if op.kind == "sync"].count(f"{HOME}/placements") >= 1
    assert door.again(without=[1]).volumes.suspects == {1}, "what was on a volume is known without it"


@pytest.mark.rule("K35")
def test_whatever_a_crash_leaves_an_answered_entry_is_found() -> None:
    door = Door()
    acked: list[tuple[int, int, int]] = []
    for at in range(4):
        for ledger in range(4):
            door.add(10 * at + ledger, 0)
            door.volumes.when_durable(
                lambda error, key=10 * at + ledger: acked.append((len(door.disk.ops) + 1, key, 0))  # type: ignore[misc]
            )
        door.pump()
    assert len(acked) == 16
    for done, name, files in door.crash_images(Random(5), 6):
        again = Door(files=files)
        for since, ledger, entry in acked:
            if since <= done:
                assert again.has(ledger, entry), (done, name, ledger)


@pytest.mark.rule("B12")
def test_of_a_lost_ledger_nothing_is_denied_forced_or_added() -> None:
    door = Door()
    door.acked(1, 0, 1)
    door.acked(2, 0)
    number = door.volumes.placements.volume_of(1)
    assert number == 1 and door.volumes.placements.volume_of(2) == 2
    door.add(1, 2)
    door.volumes.start_writing()  # deferred: answered, and not durable
    door.volumes.lose(1, "burnt")
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


@pytest.mark.rule("B12")
def test_a_fence_of_a_lost_ledger_is_taken_and_reads_stay_unknown() -> None:
    door = Door()
    door.acked(1, 0, 1)
    door.volumes.lose(1, "burnt")
    assert door.fenced(1) is None
    assert door.volumes.placements.volume_of(1) == 2
    for entry in (0, 1, 2, -1):
        assert isinstance(door.read(1, entry), DataUnknownError), entry
    door.acked(1, 1, recovery=True)
    assert door.has(1, 1)
    assert isinstance(door.read(1, 0), DataUnknownError) and isinstance(door.read(1, 2), DataUnknownError)
    with pytest.raises(BookieFailedError):
        door.add(1, 2)
    again = door.again()
    assert again.volumes.is_fenced(LedgerId(1)) and again.has(1, 1)
    assert isinstance(again.read(1, 2), DataUnknownError)
    assert again.volumes.end_suspicion(LedgerId(1), again.volumes.suspicion(LedgerId(1)))
    assert isinstance(again.read(1, 2), NoSuchEntryError)
    with pytest.raises(LedgerFencedError):
        again.add(1, 2)


def test_proof_of_an_earlier_loss_does_not_end_a_later_one() -> None:
    door = Door(3)
    door.acked(1, 0)
    door.volumes.lose(1, "burnt")
    suspicion = door.volumes.suspicion(LedgerId(1))
    door.acked(1, 0, recovery=True)
    number = door.volumes.placements.volume_of(1)
    assert number in (2, 3)
    door.volumes.lose(number, "burnt, too")
    assert not door.volumes.end_suspicion(LedgerId(1), suspicion)
    assert isinstance(door.read(1, 0), DataUnknownError) and 1 in door.volumes.suspects


def test_the_adds_of_other_volumes_are_answered_when_one_fails() -> None:
    """One chunk to two ledgers: the error names those that failed."""
    door = Door()
    door.acked(1, 0)
    door.acked(2, 0)
    door.add(1, 1)
    door.add(2, 1)
    door.disk.faults[("sync", "/d1/")] = OSError(errno.EIO, "burnt")
    error = door.done(door.volumes.when_durable)
    assert isinstance(error, PartlyFailedError) and error.ledgers == {1}
    assert door.has(2, 1) and isinstance(door.read(1, 0), DataUnknownError)
    assert door.volumes.volume_list.at("/d1").state is VolumeState.LOST  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(6))
def test_a_move_that_fails_takes_no_answered_add_with_it(seed: int) -> None:
    """The record of the move is on its way, the copy fails: adds are answered when it is taken back (K35)."""
    door = Door()
    door.acked(1, 0, 1)
    move = moving(door, 1)
    door.begun = len(door.disk.ops)
    answers: list[BaseException | None] = []
    acked: list[tuple[int, int]] = []
    ended: list[BaseException | None] = []

    def finished(error: BaseException | None) -> None:
        ended.append(error)
        door.volumes.moves.end(move)

    door.volumes.moves.finish(move, finished)
    move.error = OSError("the copy has failed")
    for entry in (2, 3, 4):
        door.add(1, entry)

        def answered(error: BaseException | None, entry: int = entry) -> None:
            acked.append((len(door.disk.ops) + 1, entry))
            answers.append(error)

        door.volumes.when_durable(answered)
        for _ in range(entry - 1):
            door.workers.step()
    door.pump()
    assert answers == [None] * 3 and ended == [move.error]
    for done, name, files in door.crash_images(Random(seed), 10):
        again = Door(files=files)
        for entry in (0, 1, *(key for since, key in acked if since <= done)):
            assert again.has(1, entry), (done, name, entry)


def test_a_volume_that_was_drained_leaves_no_ledger_that_counts_as_lost() -> None:
    """A ledger was placed there, and its first add refused."""
    door = Door()
    wrong = bytearray(make_entry(1, 0))
    wrong[0] ^= 0x80
    door.acked(1, 0)
    door.engine(2)
    with pytest.raises(BookKeeperError):
        door.volumes.append_entry(LedgerId(2), KEY, bytes(wrong))
    door.acked(3, 0)
    number = door.volumes.placements.volume_of(2)
    assert number == 2
    for state in (VolumeState.DRAINING, VolumeState.DRAINED):
        if state is VolumeState.DRAINED:
            for ledger in door.volumes.placements.ledgers_on(2):
                if door.engine(2).has(ledger):
                    move = moving(door, ledger)
                    assert door.done(lambda done: door.volumes.moves.finish(move, done)) is None  # noqa: B023
        assert door.done(lambda done: door.volumes.set_state(2, state, done)) is None  # noqa: B023
    again = door.again()
    assert not again.volumes.suspects and again.has(3, 0)


def with_one_that_knows() -> Door:
    """Ledger 1 was deleted, and only the volume that had it knows: the other was configured later, or its disk was full
    when the ledger was collected."""
    door = Door()
    door.acked(1, 0)
    assert door.volumes.placements.volume_of(1) == 1
    assert door.done(lambda done: door.engine(1).collect({LedgerId(1)}, done)) is None
    assert 1 in door.volumes.dropped and 1 not in door.engine(2).dropped
    return door


def test_what_a_drained_volume_had_dropped_is_remembered() -> None:
    """A writer that is late must not make a deleted ledger anew."""
    door = with_one_that_knows()
    for state in (VolumeState.DRAINING, VolumeState.DRAINED):
        assert door.done(lambda done: door.volumes.set_state(1, state, done)) is None  # noqa: B023
    for life in (door, door.again()):
        assert [each.number for each in life.volumes.serving] == [2]
        with pytest.raises(LedgerFencedError):
            life.add(1, 1)


def test_what_one_volume_has_dropped_outlives_its_disk() -> None:
    door = with_one_that_knows().again()
    assert door.done(door.volumes.share_dropped) is None
    begun = len(door.disk.ops)
    assert door.done(door.volumes.share_dropped) is None
    assert len(door.disk.ops) == begun, "nothing is written twice"
    with pytest.raises(LedgerFencedError):
        door.again(without=[1]).add(1, 1)


def test_a_directory_that_a_start_adds_learns_which_ledgers_were_deleted() -> None:
    async def story(cluster: DirectoriesCluster) -> None:
        await until_done(lambda done: cluster.servers["b1"].engine.collect((), done, never_again=[(1000, 1005)]))
        cluster.node("b1").crash()
        cluster.grown["b1"] = {"ledger_dirs": ("/data/ledgers", "/disk2"), "journal_dirs": ("/data/journal", "/disk2")}
        cluster.node("b1").restart()
        await cluster.until_up("b1")
        await until(lambda: all(1003 in each.engine.dropped for each in cluster.volumes("b1").serving))

    cluster = DirectoriesCluster(seed=13, bookies=1, ledger_dirs=())
    cluster.run(lambda _: story(cluster))


# -- a bookie that is asked over the network -----------------------------------------------------------------------


def run_bookie(main: Callable[[Cluster], Any]) -> None:
    run_one(main, ledger_dirs=["/d1", "/d2"])


def volumes_of(cluster: Cluster) -> Volumes:
    assert cluster.server is not None and isinstance(cluster.server.engine, Volumes)
    return cluster.server.engine


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("entries", [0, 3])
@pytest.mark.rule("B12")
def test_a_fence_that_was_lost_holds_when_the_ledger_is_whole_again(entries: int, again: bool) -> None:
    """A writer that was fenced before the loss comes back after it: its adds are refused (B3)."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        for entry_id in range(entries):
            assert await status(cluster, add(ledger, entry_id)) is Status.OK
        fence = wire.ReadEntry(ledger, EntryId(0), KEY, fence=True)
        assert await status(cluster, fence) in (Status.OK, Status.NO_ENTRY)
        assert await status(cluster, add(ledger, entries)) is Status.FENCED
        volumes = volumes_of(cluster)
        volumes.lose(volumes.placements.volume_of(ledger) or 0, "burnt")
        assert await status(cluster, add(ledger, entries)) is Status.IO_ERROR, "failed, not fenced: writers go on"
        for entry_id in range(entries):
            assert await status(cluster, add(ledger, entry_id, recovery=True)) is Status.OK
        await change(metadata, ledger, entries - 1)
        await asyncio.sleep(200)
        assert not volumes.suspects, "it is whole"
        if again:
            cluster.node.crash()
            await cluster.again()
        assert await status(cluster, wire.ReadEntry(ledger, EntryId(entries))) in (Status.NO_ENTRY, Status.NO_LEDGER)
        assert await status(cluster, add(ledger, entries)) is Status.FENCED

    run_bookie(main)


@pytest.mark.rule("B12")
def test_what_was_answered_unsynced_before_a_loss_is_never_forced() -> None:
    """The writer's connection lives on; that the ledger is closed and whole says nothing of its entries."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        plain = add(ledger, 0)
        deferred = wire.AddEntry(ledger, EntryId(0), KEY, plain.entry, deferred_sync=True)
        assert await status(cluster, deferred) is Status.OK
        volumes = volumes_of(cluster)
        volumes.lose(volumes.placements.volume_of(ledger) or 0, "burnt")
        assert await status(cluster, wire.ForceLedger(ledger)) is Status.IO_ERROR
        await change(metadata, ledger, -1)
        await asyncio.sleep(200)
        assert not volumes.suspects
        assert await status(cluster, wire.ForceLedger(ledger)) is not Status.OK

    run_bookie(main)


def test_callers_pause_while_any_volume_has_too_much_to_write() -> None:
    door, said = Door(), list[str]()
    door.volumes.on_pressure(lambda: said.append("pause"), lambda: said.append("resume"))
    for ledger in (1, 2):
        for entry in range(100):
            door.volumes.append_entry(LedgerId(ledger), KEY, make_entry(ledger, entry, size=2000))
    assert {door.volumes.placements.volume_of(ledger) for ledger in (1, 2)} == {1, 2}
    door.volumes.when_durable(lambda error: None)
    assert "pause" in said and "resume" not in said
    door.pump()
    assert said[-1] == "resume" and said.count("resume") == 1, "when the last of them has caught up"


def test_every_volume_is_compacted() -> None:
    door = Door()
    assert door.done(lambda done: door.volumes.compact(done, major=True)) is None
    assert [each.engine.stats.compactions for each in door.volumes.serving] == [1, 1]
    assert door.volumes.stats.compactions == 2


def test_a_ledger_that_is_nowhere_is_not_here() -> None:
    door = Door()
    door.add(1, 0)
    assert door.volumes.has(LedgerId(1)) and not door.volumes.has(LedgerId(2))


@pytest.mark.parametrize("which", ["source", "target"])
def test_a_move_knows_that_its_volume_was_lost(which: str) -> None:
    door = Door(3)
    door.add(1, 0)
    assert door.done(door.volumes.when_durable) is None
    source = door.volumes.placements.volume_of(1)
    move = door.volumes.begin_move(LedgerId(1), next(each for each in door.volumes.serving if each.number != source))
    door.volumes.lose(getattr(move, which).number, "burnt")
    assert isinstance(move.error, BookieFailedError)
    assert "was lost: burnt" in str(move.error)


def test_a_bookie_is_read_only_at_once_when_its_last_volume_with_room_fills_up() -> None:
    door, told = Door(), list[EngineState]()
    door.acked(1, 0)
    door.acked(2, 0)
    door.volumes.on_state(lambda state, reason: told.append(state))
    for ledger, state in ((1, EngineState.WRITABLE), (2, EngineState.READ_ONLY)):
        number = door.volumes.placements.volume_of(ledger)
        assert number == ledger
        door.disk.faults["write", f"/d{number}/"] = OSError(errno.ENOSPC, "no space")
        door.add(ledger, 1)
        door.done(door.volumes.when_durable)
        assert door.engine(number).state is EngineState.READ_ONLY and door.volumes.state is state
    assert told == [EngineState.READ_ONLY]


def test_while_the_volumes_close_nothing_more_is_placed() -> None:
    door, ended = Door(), list[BaseException | None]()
    door.acked(1, 0)
    door.volumes.close(ended.append)
    with pytest.raises(BookieFailedError, match="closing"):
        door.add(9, 0)
    assert door.volumes.placements.volume_of(9) is None
    door.pump()
    assert ended == [None]


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
    with pytest.raises(DiskFullError):
        door.volumes.fence(LedgerId(4), KEY, lambda error: None)
    assert [door.volumes.placements.volume_of(ledger) for ledger in (3, 4)] == [None, None]
    door.acked(1, 1)
    door.disk.faults.clear()
    door.volumes.check_space()
    door.pump()
    door.acked(3, 0)
    door.acked(2, 1)
