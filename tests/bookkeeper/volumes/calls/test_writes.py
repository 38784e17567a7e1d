"""What is written goes to the volume of the ledger, and is answered when it and its place are durable."""

from __future__ import annotations

import asyncio
import errno
from random import Random

import pytest

from bookkeeper import wire
from bookkeeper.errors import (
    BookieFailedError,
    DataUnknownError,
)
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.base.results import Done
from bookkeeper.volumes.after_all import PartlyFailedError
from bookkeeper.volumes.disks.volume_list import VolumeState
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import add, change, named, status
from tests.bookkeeper.storage.workload import KEY
from tests.bookkeeper.volumes.doors import HOME, Door, moving
from tests.bookkeeper.volumes.stories import (
    run_bookie,
    volumes_of,
)


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
        volumes.members.lose(volumes.placements.volume_of(ledger) or 0, "burnt")
        assert await status(cluster, wire.ForceLedger(ledger)) is Status.IO_ERROR
        await change(metadata, ledger, -1)
        await asyncio.sleep(200)
        assert not volumes.suspects
        assert await status(cluster, wire.ForceLedger(ledger)) is not Status.OK

    run_bookie(main)


def test_what_nobody_waits_for_is_written_soon_and_its_place_too() -> None:
    door = Door()
    door.acked(1, 0)
    door.add(2, 0)
    door.volumes.start_writing()
    door.pump()
    assert door.volumes.journal_bytes_in_flight == 0
    assert door.again().has(2, 0)
    assert door.again(without=[2]).volumes.suspects == {2}


def wait_or_force(door: Door, how: str, done: Done) -> None:
    if how == "wait":
        return door.volumes.when_durable(done)
    door.volumes.start_writing()
    return door.volumes.force(LedgerId(1), done)


@pytest.mark.parametrize("how", ["wait", "force"])
@pytest.mark.rule("K35")
def test_what_is_added_while_its_ledger_moves_is_answered_when_both_have_it(how: str) -> None:
    """From then on the target may be recorded at any moment."""
    door = Door()
    door.acked(1, 0)
    move = moving(door, 1)
    door.add(1, 1)
    answers: list[BaseException | None] = []
    wait_or_force(door, how, answers.append)
    while not answers:
        assert door.workers.step(), "it hangs"
    assert answers == [None]
    for each in (move.source, move.target):
        assert each.engine.journal_bytes_in_flight == 0


@pytest.mark.rule("K35")
def test_a_force_after_a_move_has_failed_waits_until_the_source_is_recorded_again() -> None:
    door = Door()
    door.acked(1, 0)
    move = moving(door, 1)
    door.volumes.moves.finish(move, lambda error: None)
    move.error = OSError("the copy has failed")
    answers: list[BaseException | None] = []
    door.volumes.force(LedgerId(1), answers.append)
    while not answers:
        assert door.workers.step(), "it hangs"
    assert answers == [None]
    door.pump()  # the crash comes before the move is ended
    assert door.again().volumes.placements.volume_of(1) == move.source.number


@pytest.mark.parametrize("what", ["add", "fence", "force"])
@pytest.mark.rule("K35", "B12")
def test_what_waits_for_its_place_fails_when_its_volume_is_lost_meanwhile(what: str) -> None:
    """It would count as a copy that is known to be gone."""
    door, answers = Door(publishes=False), list[BaseException | None]()
    begin(door, what, answers.append)
    door.pump()
    assert answers == [], "it is not published where it lies"
    door.volumes.members.lose(door.volumes.placements.volume_of(1) or 0, "burnt")
    door.pump()
    door.publish()
    door.pump()
    assert len(answers) == 1 and isinstance(answers[0], BookieFailedError)
