"""Lost ledgers are suspects until somebody has proved that they are whole."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import wire
from bookkeeper.errors import (
    BookieFailedError,
    DataUnknownError,
    LedgerFencedError,
    NoSuchEntryError,
)
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import add, change, named, status
from tests.bookkeeper.storage.workload import KEY, make_entry
from tests.bookkeeper.volumes.doors import Door
from tests.bookkeeper.volumes.stories import (
    run_bookie,
    volumes_of,
)


@pytest.mark.rule("B12")
def test_a_fence_of_a_lost_ledger_is_taken_and_reads_stay_unknown() -> None:
    door = Door()
    door.acked(1, 0, 1)
    door.volumes.members.lose(1, "burnt")
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
    door.volumes.members.lose(1, "burnt")
    suspicion = door.volumes.suspicion(LedgerId(1))
    door.acked(1, 0, recovery=True)
    number = door.volumes.placements.volume_of(1)
    assert number in (2, 3)
    door.volumes.members.lose(number, "burnt, too")
    assert not door.volumes.end_suspicion(LedgerId(1), suspicion)
    assert isinstance(door.read(1, 0), DataUnknownError) and 1 in door.volumes.suspects


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
        volumes.members.lose(volumes.placements.volume_of(ledger) or 0, "burnt")
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


def test_what_a_move_has_left_on_another_volume_is_suspect_to_nobody() -> None:
    door = Door()
    door.acked(1, 0)
    door.engine(2).append_entry(LedgerId(1), KEY, make_entry(1, 0), recovery=True)
    door.engine(2).scrubber.suspect([LedgerId(1)])
    assert not door.volumes.suspects
    door.engine(1).scrubber.suspect([LedgerId(1)])
    assert door.volumes.suspects == {1}


def test_a_damaged_ledger_that_is_whole_again_takes_adds() -> None:
    """Its fence was not lost with anything."""
    door = Door()
    door.acked(1, 0)
    door.engine(1).scrubber.suspect([LedgerId(1)])
    assert door.volumes.end_suspicion(LedgerId(1), door.volumes.suspicion(LedgerId(1)))
    assert not door.volumes.suspects and not door.volumes.placements.retired
    door.acked(1, 1)
    assert door.done(lambda done: door.volumes.force(LedgerId(1), done)) is None


@pytest.mark.rule("B9")
def test_limbo_of_volumes_narrows_to_the_ledgers_that_are_named() -> None:
    door = Door()
    door.acked(1, 0)
    door.acked(2, 0)
    kept = {name: data for name, data in door.disk.files().items() if not name.endswith(".journal")}
    again = Door(files=kept)
    assert [again.volumes.in_limbo, again.volumes.takes_new_ledgers] == [True, False]
    again.volumes.narrow_limbo([LedgerId(1)])
    assert [again.volumes.in_limbo, again.volumes.takes_new_ledgers] == [True, True]
    assert isinstance(again.read(1, 5), DataUnknownError)
