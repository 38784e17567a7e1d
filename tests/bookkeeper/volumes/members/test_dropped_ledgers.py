"""Which ledgers were deleted is remembered by every volume."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.errors import (
    LedgerFencedError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.volumes.after_all import until_done
from bookkeeper.volumes.disks.volume_list import VolumeState
from tests.bookkeeper.storage.workload import KEY
from tests.bookkeeper.volumes.doors import Door
from tests.bookkeeper.volumes.stories import DirectoriesCluster, until


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
        await until_done(lambda done: cluster.servers["b1"].engine.collect((), done, never_again=[(1000, 1005)]))
        cluster.node("b1").crash()
        cluster.grown["b1"] = {"ledger_dirs": ("/data/ledgers", "/disk2"), "journal_dirs": ("/data/journal", "/disk2")}
        cluster.node("b1").restart()
        await cluster.until_up("b1")
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
