"""The list of volumes follows what is set, and whoever waits is told when it is durable."""

from __future__ import annotations

import errno

from bookkeeper.errors import DiskFullError
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, read_volumes
from bookkeeper.volumes.disks.volume_list_file import VolumeListFile
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk


def _kept() -> tuple[VolumeListFile, RecordingDisk, QueueWorkers]:
    disk, workers = RecordingDisk(), QueueWorkers()
    listed = VolumeList(7).with_new("/d1", "/d1").with_new("/d2", "/d2", VolumeState.USED)
    return VolumeListFile(disk, "/home", listed, workers.worker("volumes")), disk, workers


def test_what_is_set_while_it_is_written_is_written_next_and_once() -> None:
    kept, disk, workers = _kept()
    told: list[tuple[str, BaseException | None]] = []
    kept.write(lambda error: told.append(("first", error)))
    for state in (VolumeState.DRAINING, VolumeState.DRAINED):
        kept.now = kept.now.with_state(2, state)
        kept.write(lambda error, state=state: told.append((state.value, error)))  # type: ignore[misc]
    assert told == []
    assert workers.step()
    found = read_volumes(disk, "/home")
    assert found is not None and found.entries[1].state is VolumeState.USED
    assert told == [("first", None)]
    assert workers.step() and not workers.step()
    assert told == [("first", None), ("draining", None), ("drained", None)]
    assert read_volumes(disk, "/home") == kept.now


def test_a_failure_is_told_to_everybody() -> None:
    kept, disk, workers = _kept()
    failed: list[BaseException] = []
    told: list[BaseException | None] = []
    kept.failed = failed.append
    disk.faults["open", "volumes"] = OSError(errno.EIO, "broken")
    kept.write(told.append)
    workers.pump()
    assert failed == told and isinstance(failed[0], OSError)


def test_only_a_volume_in_use_gets_new_ledgers() -> None:
    kept, _, _ = _kept()
    assert not kept.is_used(1)
    assert kept.is_used(2)
    assert not kept.is_used(3)
    kept.now = kept.now.with_state(2, VolumeState.DRAINING)
    assert not kept.is_used(2)


def test_without_space_the_list_is_written_later() -> None:
    kept, disk, workers = _kept()
    failed: list[BaseException] = []
    told: list[BaseException | None] = []
    kept.failed = failed.append
    disk.faults["open", "volumes"] = OSError(errno.ENOSPC, "full")
    kept.now = kept.now.with_state(2, VolumeState.LOST, "burnt")
    kept.write(told.append)
    workers.pump()
    assert isinstance(told[0], DiskFullError) and "/home/volumes cannot be written for now" in str(told[0])
    assert not failed, "the bookie serves on"
    kept.catch_up()
    workers.pump()
    assert read_volumes(disk, "/home") is None
    disk.faults.clear()
    kept.catch_up()
    workers.pump()
    assert read_volumes(disk, "/home") == kept.now
    kept.catch_up()
    assert not workers.step(), "nothing is written twice"


def test_a_list_that_was_not_synced_is_no_lack_of_space() -> None:
    kept, disk, workers = _kept()
    failed: list[BaseException] = []
    kept.failed = failed.append
    disk.faults["sync", "volumes"] = OSError(errno.ENOSPC, "full")
    kept.write(lambda error: None)
    workers.pump()
    assert len(failed) == 1
