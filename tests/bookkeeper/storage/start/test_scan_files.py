"""What a start finds: the manifest, the logs, and an index from segments or from logs."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from bookkeeper.errors import LedgerFencedError
from bookkeeper.storage.base.results import PublishedProgress
from bookkeeper.storage.engine import Engine
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.start.crashed_life import a_life, manifest_of
from tests.bookkeeper.storage.workload import (
    CONFIG,
    Life,
    add,
    close,
    everything,
    lid,
    open_engine,
)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def test_a_directory_keeps_the_id_it_was_made_with(disk: RecordingDisk) -> None:
    for given in (77, 0, 77):
        workers = QueueWorkers()
        engine = Engine.open(CONFIG, disk, workers, known=PublishedProgress(directory_id=given))
        assert manifest_of(disk).directory_id == 77
        close(engine, workers)


@pytest.mark.rule("K19", "B3", "M6")
@pytest.mark.parametrize("kind", ["manifest", ".index"])
def test_without_an_index_everything_comes_from_the_logs(kind: str) -> None:
    files, wanted = a_life()
    disk = RecordingDisk(files)
    close(*open_engine(disk))
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


@pytest.mark.rule("B3", "K19", "M6")
def test_a_deleted_ledger_does_not_come_back_whichever_index_segment_rots() -> None:
    """Its records lie beside those of a living one, and the log with the record of its deletion is gone."""
    config = replace(CONFIG, entry_log_bytes=1 << 20, index_segments=20)
    disk = RecordingDisk()
    life = Life(disk, config)
    life.add(1, 0)
    life.add(2, 0)
    life.pump()
    life.checkpoint()
    life.pump()
    for gone in ([lid(1)], []):  # each life has a log of its own, and the second pass removes that of the first
        engine, workers = open_engine(disk, config)
        engine.collect(gone, lambda error: None)
        workers.pump()
    assert len(manifest_of(disk).logs) == 1, "the one with the records of both ledgers"
    files = disk.files()
    segments = sorted(name for name in files if name.endswith(".index"))
    assert segments == sorted(f"/ledgers/{key:016x}.index" for key in manifest_of(disk).segments)
    for rotten in segments:
        hurt = RecordingDisk({**files, rotten: files[rotten][:-1] + b"!"})
        for _ in range(2):  # what the rebuilt index says, a later one says, too
            engine, _ = open_engine(hurt, config)
            assert list(engine.ledgers()) == [2] and engine.is_fenced(lid(1))
            with pytest.raises(LedgerFencedError):
                add(engine, 1, 1)
        assert manifest_of(hurt).deletions is not None, "and it is said twice again"


@pytest.mark.rule("K22")
@pytest.mark.parametrize("marked", ["/ledgers/dirty", "/journal/dirty"])
def test_one_marker_is_enough_to_doubt_a_clean_stop(disk: RecordingDisk, marked: str) -> None:
    close(*open_engine(disk))
    files = disk.files()
    assert open_engine(RecordingDisk(files))[0].report.clean
    assert not open_engine(RecordingDisk({**files, marked: b""}))[0].report.clean
