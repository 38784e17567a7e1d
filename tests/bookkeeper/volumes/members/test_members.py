"""Volumes that are added, fail, are drained, while writers write."""

from __future__ import annotations

import asyncio
import errno
from random import Random

import pytest

from bookkeeper.errors import (
    BookieFailedError,
    BookKeeperError,
    DiskFullError,
    LedgerFencedError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.storage.base.results import Done
from bookkeeper.storage.engine import Engine, EngineState
from bookkeeper.volumes import Volume
from bookkeeper.volumes.after_all import wait_until_done
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, read_volumes, share_of
from bookkeeper.volumes.members.members import Pressure
from tests.bookkeeper.storage.workload import CONFIG, KEY, make_entry
from tests.bookkeeper.volumes.doors import HOME, Door, moving
from tests.bookkeeper.volumes.stories import DISKS, DirectoriesCluster, Writers, directories_of, until


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
        assert door.done(lambda done: door.volumes.members.set_state(1, state, done)) is None  # noqa: B023
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
        await wait_until_done(lambda done: cluster.servers["b1"].engine.collect((), done, never_again=[(1000, 1005)]))
        cluster.node("b1").crash()
        cluster.grown["b1"] = {"ledger_dirs": ("/data/ledgers", "/disk2"), "journal_dirs": ("/data/journal", "/disk2")}
        cluster.node("b1").restart()
        await cluster.wait_until_up("b1")
        await until(lambda: all(1003 in each.engine.dropped for each in cluster.volumes("b1").serving))

    cluster = DirectoriesCluster(seed=13, bookies=1, ledger_dirs=())
    cluster.run(lambda _: story(cluster))


@pytest.mark.rule("B2", "B3")
@pytest.mark.parametrize("was_here", [True, False])
def test_a_fence_of_a_dropped_ledger_is_answered_when_the_drop_is_durable(was_here: bool) -> None:
    """Cause: it was answered as soon as any volume had it among the dropped ones in memory."""
    door = Door()
    door.acked(1, 0)
    ledger = LedgerId(1 if was_here else 7)
    door.begun = len(door.disk.ops)
    answers: list[int] = []
    door.volumes.collect([LedgerId(1)], lambda error: None, never_again=[(0, 9)])
    door.volumes.fence(ledger, KEY, lambda error: answers.append(len(door.disk.ops) + 1))
    assert answers == [], "nothing is durable yet"
    door.pump()
    assert len(answers) == 1
    for done, name, files in door.crash_images(Random(4), 4):
        assert Door(files=files).volumes.is_fenced(ledger) or done < answers[0], (done, name)


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
            await cluster.wait_until_up("b1")
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
            await cluster.wait_until_up("b1")
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
            await cluster.wait_until_up("b1")
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

            volumes = cluster.volumes("b1")
            set_state = volumes.members.set_state

            def slow(number: int, state: VolumeState, callback: Done) -> None:
                node.disk.sync_s = 1.0 if state is VolumeState.DRAINED else 0.0001
                set_state(number, state, callback)

            async def says(_text: str) -> None:
                pass

            monkeypatch.setattr(volumes.members, "set_state", slow)
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
            await server.ledger_directories.add("/disk4", "/disk4")
            await asyncio.sleep(1)
            await writers.stop()
            assert cluster.volumes("b1").placements.count(4) > 0
            cluster.dirs_of["b1"] = (*DISKS, "/disk4")
            cluster.node("b1").crash()
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            assert directories_of(cluster.servers["b1"])["/disk4"] == "used"
        await cluster.check_acked()

    cluster = DirectoriesCluster(seed=6)
    cluster.run(lambda _: story(cluster))


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
        assert door.done(lambda done: door.volumes.members.set_state(2, state, done)) is None  # noqa: B023
    again = door.again()
    assert not again.volumes.suspects and again.has(3, 0)


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


def test_a_bookie_has_failed_at_once_when_its_last_volume_has() -> None:
    door, told = Door(), list[tuple[EngineState, str]]()
    door.volumes.on_state(lambda state, reason: told.append((state, reason)))
    states = []
    for number, reason in ((1, "burnt"), (2, "burnt, too")):
        door.volumes.members.lose(number, reason)
        states.append(door.volumes.state)
    assert states == [EngineState.WRITABLE, EngineState.FAILED]
    assert told == [(EngineState.FAILED, "the last ledger directory, /d2: burnt, too")]


def test_while_the_volumes_close_nothing_more_is_placed() -> None:
    door, ended = Door(), list[BaseException | None]()
    door.acked(1, 0)
    door.volumes.close(ended.append)
    with pytest.raises(BookieFailedError, match="closing"):
        door.add(9, 0)
    assert door.volumes.placements.volume_of(9) is None
    door.pump()
    assert ended == [None]


def added(door: Door) -> tuple[Volume, list[BaseException | None]]:
    """A third volume is being added."""
    listed, ended = door.volumes.volume_list.with_new("/d3", "/d3"), list[BaseException | None]()
    config = share_of(CONFIG, listed.entries[-1], 1)
    volume = Volume(3, config, Engine.open(config, door.disk, door.workers))
    door.volumes.members.add(volume, listed, ended.append)
    return volume, ended


def test_a_volume_that_fails_while_it_is_added_is_lost_and_who_asked_is_told() -> None:
    door = Door()
    volume, ended = added(door)
    door.disk.faults["write", "/d3/"] = OSError(errno.EIO, "burnt")
    volume.engine.fence(LedgerId(9), KEY, lambda error: None)
    door.pump()
    assert len(ended) == 1 and "/d3 failed while it was added" in str(ended[0])
    assert door.volumes.volume_list.at("/d3").state is VolumeState.LOST  # type: ignore[union-attr]
    door.acked(1, 0)
    assert door.volumes.state is EngineState.WRITABLE


@pytest.mark.parametrize("steps", range(12))
def test_a_volume_that_is_added_while_the_bookie_closes_is_closed_too(steps: int) -> None:
    door = Door()
    volume, ended = added(door)
    closed: list[BaseException | None] = []
    for _ in range(steps):
        door.workers.step()
    door.volumes.close(closed.append)
    door.pump()
    assert closed == [None] and len(ended) == 1
    assert volume.engine.state is EngineState.CLOSED
    again = door.again()
    again.acked(1, 0)


def drained(door: Door, number: int) -> BaseException | None:
    return door.done(lambda done: door.volumes.members.set_state(number, VolumeState.DRAINED, done))


@pytest.mark.parametrize("state", [VolumeState.DRAINING, VolumeState.DRAINED])
def test_a_full_disk_with_the_list_ends_no_bookie(state: VolumeState) -> None:
    """Who asked is told what to do, nothing has changed, and it can be asked for again."""
    door = Door(3)
    door.acked(2, 0)
    assert door.done(lambda done: door.volumes.members.set_state(1, VolumeState.DRAINING, done)) is None
    number = 3 if state is VolumeState.DRAINING else 1
    before = [(each.number, each.state) for each in door.volumes.volume_list]
    door.disk.faults["open", "/home/volumes"] = OSError(errno.ENOSPC, "full")
    error = door.done(lambda done: door.volumes.members.set_state(number, state, done))
    assert isinstance(error, DiskFullError) and "free some space there" in str(error)
    assert door.volumes.state is EngineState.WRITABLE
    assert [(each.number, each.state) for each in door.volumes.volume_list] == before
    assert {each.number for each in door.volumes.serving} == {1, 2, 3}
    door.acked(2, 1)
    door.disk.faults.clear()
    assert door.done(lambda done: door.volumes.members.set_state(number, state, done)) is None
    assert door.volumes.members.is_last(2) is (number == 3)


def test_a_loss_that_could_not_be_noted_is_noted_when_there_is_space() -> None:
    door = Door(3)
    door.acked(2, 0)
    door.disk.faults["open", "/home/volumes"] = OSError(errno.ENOSPC, "full")
    door.volumes.members.lose(1, "burnt")
    door.pump()
    assert door.volumes.state is EngineState.WRITABLE
    door.disk.faults.clear()
    door.volumes.check_space()
    door.pump()
    listed = read_volumes(door.disk, HOME)
    assert listed is not None and listed == door.volumes.volume_list
    assert listed.at("/d1").state is VolumeState.LOST  # type: ignore[union-attr]


def test_a_volume_that_cannot_be_let_go_now_is_let_go_later() -> None:
    """Another disk is full, so it cannot remember what was dropped."""
    door = Door(3)
    door.acked(1, 0)
    assert door.done(lambda done: door.engine(1).collect({LedgerId(1)}, done)) is None
    assert door.done(lambda done: door.volumes.members.set_state(1, VolumeState.DRAINING, done)) is None
    door.disk.faults["open", "/d3/"] = OSError(errno.ENOSPC, "full")
    assert drained(door, 1) is not None
    assert {each.number for each in door.volumes.serving} == {1, 2, 3}, "it is tried again"
    door.disk.faults.clear()
    assert drained(door, 1) is None
    assert {each.number for each in door.volumes.serving} == {2, 3}
    with pytest.raises(LedgerFencedError):
        door.again().add(1, 1)


def test_a_volume_that_fails_while_it_is_let_go_is_lost() -> None:
    door = Door(3)
    assert door.done(lambda done: door.volumes.members.set_state(1, VolumeState.DRAINING, done)) is None
    volume = door.volume(1)
    door.disk.faults["open", "/home/volumes"] = OSError(errno.ENOSPC, "full")
    ended: list[BaseException | None] = []
    door.volumes.members.set_state(1, VolumeState.DRAINED, ended.append)
    door.disk.faults["write", "/d1/"] = OSError(errno.EIO, "burnt")
    volume.engine.fence(LedgerId(99), KEY, lambda error: None)
    door.pump()
    assert volume.engine.state is EngineState.FAILED and isinstance(ended[0], DiskFullError)
    assert door.volumes.volume_list.at("/d1").state is VolumeState.LOST  # type: ignore[union-attr]
    assert {each.number for each in door.volumes.serving} == {2, 3}


def test_a_volume_that_is_lost_while_it_has_too_much_to_write_keeps_no_caller_waiting() -> None:
    door, said = Door(), list[str]()
    door.acked(1, 0)
    door.volumes.on_pressure(lambda: said.append("pause"), lambda: said.append("resume"))
    for entry in range(1, 101):
        door.volumes.append_entry(LedgerId(1), KEY, make_entry(1, entry, size=2000))
    door.volumes.when_durable(lambda error: None)
    assert said[-1] == "pause"
    door.volumes.members.lose(1, "burnt")
    assert said[-1] == "resume"


@pytest.mark.parametrize(("code", "serves"), [(errno.EMFILE, True), (errno.EIO, False), (errno.ENOENT, False)])
def test_a_volume_that_cannot_be_asked_for_its_space_is_lost_unless_that_passes(
    code: int, serves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door()

    def fails() -> None:
        raise OSError(code, "no answer")

    monkeypatch.setattr(door.engine(1), "check_space", fails)
    door.volumes.check_space()
    assert [each.number for each in door.volumes.serving] == ([1, 2] if serves else [2])


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


def test_callers_go_on_when_the_last_volume_has_caught_up() -> None:
    pressure, said = Pressure(), list[str]()
    pressure.on_change(lambda: said.append("pause"), lambda: said.append("resume"))
    pressure.begin(1)
    pressure.begin(2)
    pressure.end(1)
    assert said == ["pause", "pause"]
    pressure.end(2)
    assert said == ["pause", "pause", "resume"]
