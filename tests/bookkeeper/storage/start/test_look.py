"""What a start finds: the manifest, the logs, and an index from segments or from logs."""

from __future__ import annotations

import errno

import pytest

from bookkeeper.storage.engine import Engine
from bookkeeper.storage.results import PublishedProgress
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.start.crashed_life import a_life, manifest_of
from tests.bookkeeper.storage.workload import (
    CONFIG,
    everything,
    lid,
    open_engine,
)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def test_a_directory_keeps_the_id_it_was_made_with(disk: RecordingDisk) -> None:
    for given in (77, 0, 77):
        engine = Engine.open(CONFIG, disk, QueueWorkers(), known=PublishedProgress(directory_id=given))
        assert manifest_of(disk).directory_id == 77
        engine.close_blocking()


@pytest.mark.rule("K19", "B3", "M6")
@pytest.mark.parametrize("kind", ["manifest", ".index"])
def test_without_an_index_everything_comes_from_the_logs(kind: str) -> None:
    files, wanted = a_life()
    disk = RecordingDisk(files)
    open_engine(disk)[0].close_blocking()
    files = disk.files()
    for name in [name for name in files if name.endswith(kind)]:
        if kind == "manifest":
            del files[name]
        else:
            files[name] = files[name][:-1]
    engine, workers = open_engine(RecordingDisk(files))
    assert engine.in_limbo is (kind == "manifest"), "without it nobody knows which logs there were"
    engine.narrow_limbo([])
    assert engine.report.rebuilt and everything(engine, workers) == wanted
    assert engine.is_fenced(lid(1)), "deleted, and so for ever"


@pytest.mark.rule("K19", "K27")
def test_an_index_that_the_disk_does_not_give_is_rebuilt_from_the_logs() -> None:
    files, wanted = a_life()
    disk = RecordingDisk(files)
    disk.faults["read", ".index"] = OSError(errno.EIO, "input/output error")
    engine, workers = open_engine(disk)
    assert engine.report.rebuilt and engine.report.quarantined
    disk.faults.clear()
    assert everything(engine, workers) == wanted
