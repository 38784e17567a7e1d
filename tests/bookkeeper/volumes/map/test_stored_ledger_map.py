"""Places in memory and in the file: what is new is waited for, and what is forgotten keeps what it must."""

from __future__ import annotations

from bookkeeper.ids import LedgerId
from bookkeeper.volumes.map.ledger_map import PlacementKind, Placements
from bookkeeper.volumes.map.placement_file import NAME, decode_placements
from bookkeeper.volumes.map.placement_log import PlacementLog, write_placements
from bookkeeper.volumes.map.stored_ledger_map import StoredLedgerMap
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk


def _places() -> tuple[StoredLedgerMap, RecordingDisk, QueueWorkers]:
    disk, workers = RecordingDisk(), QueueWorkers()
    end = write_placements(disk, "/home", 7, 1, ())
    log = PlacementLog(disk, "/home", 7, end, workers.worker("placements"), lambda error: None)
    log.publish_with(lambda: log.published(log.end))
    return StoredLedgerMap(Placements(), log), disk, workers


def _stored(disk: RecordingDisk) -> Placements:
    return Placements(decode_placements(disk.read_file(f"/home/{NAME}"), 7, NAME).records)


def test_k35_a_new_place_is_fresh_until_it_is_durable() -> None:
    places, disk, workers = _places()
    places.place(1, 2)
    assert places.any_fresh([3, 1]) and not places.any_fresh([3])
    told: list[BaseException | None] = []
    places.when_placed(told.append)
    places.place(4, 2)  # after the write of the first has begun
    assert places.placements.volume_of(1) == 2 and told == []
    workers.step()
    assert told == [None]
    assert not places.any_fresh([1]) and places.any_fresh([4])
    assert _stored(disk).volume_of(1) == 2 and _stored(disk).volume_of(4) is None
    places.write()
    workers.pump()
    assert not places.any_fresh([4]) and _stored(disk).volume_of(4) == 2


def test_what_a_drained_volume_leaves_keeps_what_it_must() -> None:
    places, disk, workers = _places()
    for ledger, more in ((1, ()), (2, (PlacementKind.LOST,)), (3, (PlacementKind.WHOLE,))):
        places.place(ledger, 5)
        for kind in more:
            places.note(kind, ledger)
    places.forget_empty(5)
    workers.pump()
    for found in (places.placements, _stored(disk)):
        assert found.count(5) == 0
        assert set(found.lost) == {2} and found.retired == {3}


def test_a_deleted_ledger_that_is_lost_stays_lost() -> None:
    places, disk, workers = _places()
    places.place(1, 1)
    places.record(PlacementKind.LOST, 2)
    told: list[BaseException | None] = []
    places.forget([LedgerId(1), LedgerId(2)], told.append)
    workers.pump()
    assert told == [None]
    assert _stored(disk).volume_of(1) is None and set(_stored(disk).lost) == {2}
