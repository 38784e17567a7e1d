"""One volume answers as its engine does, and leaves the same files."""

from __future__ import annotations

import inspect

from bookkeeper.errors import DataUnknownError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.engine import Engine
from bookkeeper.volumes import OneVolume
from bookkeeper.volumes.disks.volume_list import ONLY, VolumeState
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, Storage, everything, make_entry, open_engine
from tests.bookkeeper.volumes.doors import Door


def opened(disk: RecordingDisk) -> tuple[OneVolume, QueueWorkers]:
    engine, workers = open_engine(disk)
    return OneVolume(engine, CONFIG), workers


def written(storage: Storage, workers: QueueWorkers) -> list[BaseException | None]:
    """Adds, a fence, a collection, a clean stop; what was answered."""
    answers: list[BaseException | None] = []
    for ledger in (1, 2, 3):
        storage.append_entry(LedgerId(ledger), KEY, make_entry(ledger, 0))
    storage.when_durable(answers.append)
    workers.pump()
    storage.fence(LedgerId(1), KEY, answers.append)
    storage.collect({LedgerId(3)}, answers.append)
    workers.pump()
    storage.close(answers.append)
    workers.pump()
    return answers


def test_one_volume_leaves_the_files_of_its_engine_byte_for_byte() -> None:
    disks = RecordingDisk(), RecordingDisk()
    assert written(*open_engine(disks[0])) == written(*opened(disks[1])) == [None] * 4
    assert disks[0].files() == disks[1].files()
    assert everything(*open_engine(RecordingDisk(disks[0].files()))) == everything(*opened(disks[1]))


def test_one_volume_has_every_ledger_and_no_map() -> None:
    volumes, workers = opened(RecordingDisk())
    volumes.append_entry(LedgerId(7), KEY, make_entry(7, 0))
    volumes.when_durable(lambda error: None)
    workers.pump()
    (only,) = volumes.serving
    assert volumes.volume_with(LedgerId(7)) is volumes.volume_with(LedgerId(8)) is only
    assert volumes.placement_log is None and len(volumes.placements) == 0 and volumes.ledger_count(ONLY) == 1
    assert volumes.positions == {ONLY: only.engine.durable_position}
    (entry,) = volumes.volume_list
    assert volumes.volume_list.file_id == 0 and entry.state is VolumeState.USED
    assert (entry.ledger_dir, entry.journal_dir) == (CONFIG.ledger_dir, CONFIG.journal_dir)


def test_what_an_engine_cannot_tell_one_volume_cannot_either() -> None:
    volumes, workers = opened(RecordingDisk())
    volumes.doubt({9})
    got: list[bytes | BaseException] = []
    volumes.read(LedgerId(9), EntryId(0), got.append)
    workers.pump()
    assert isinstance(got[0], DataUnknownError) and volumes.suspects == frozenset()


def test_volumes_have_the_calls_of_an_engine_with_its_arguments() -> None:
    own = {"open", "durable_position", "master_key", "may_lack"}
    one, _ = opened(RecordingDisk())
    (only,) = one.serving
    for name in {name for name in vars(Engine) if not name.startswith("_")} - own:
        for volumes in (one, Door().volumes):
            ours, engines = getattr(volumes, name), getattr(only.engine, name)
            assert callable(ours) is callable(engines), name
            if callable(ours):
                assert inspect.signature(ours) == inspect.signature(engines), name
