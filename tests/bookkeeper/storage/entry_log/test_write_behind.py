"""Between checkpoints: small syncs, and a bounded share of the page cache."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from bookkeeper.errors import BookieFailedError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.base.durable_file import SyncFailedError
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.engine import Engine
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, add, open_engine

STEPPED = replace(CONFIG, log_sync_bytes=4096, cached_bytes=16384, entry_log_bytes=1 << 20)


def fill(engine: Engine, workers: QueueWorkers, begin: int, end: int) -> None:
    """One group an entry of about 1 KB."""
    for entry_id in range(begin, end):
        add(engine, 1, entry_id, size=1000)
        engine.when_durable(lambda error: None)
        workers.pump()


def log_syncs(disk: RecordingDisk) -> int:
    return sum(op.kind == "sync" and op.path.endswith(".log") for op in disk.ops)


def test_entry_logs_are_synced_in_steps() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, STEPPED)
    fill(engine, workers, 0, 1)
    before = log_syncs(disk)
    fill(engine, workers, 1, 41)
    assert log_syncs(disk) - before == 10, "about every fourth entry of a kilobyte"


def test_without_steps_only_checkpoints_sync() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, replace(STEPPED, log_sync_bytes=0))
    fill(engine, workers, 0, 1)
    before = log_syncs(disk)
    fill(engine, workers, 1, 41)
    assert log_syncs(disk) == before and not disk.forgotten


def test_the_page_cache_keeps_the_newest() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, STEPPED)
    fill(engine, workers, 0, 60)
    end = max(offset + size for _, offset, size in disk.forgotten)
    assert sum(size for _, _, size in disk.forgotten) == end - 4096, "from the first record on, without gaps"
    (log,) = {path for path, _, _ in disk.forgotten}
    assert 16384 - 8192 <= len(disk.names[log].data) - end <= 16384 + 8192


def test_it_goes_on_from_log_to_log() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, replace(STEPPED, entry_log_bytes=20000))
    fill(engine, workers, 0, 100)
    assert len({path for path, _, _ in disk.forgotten}) > 2
    assert engine.state is EngineState.WRITABLE


@pytest.mark.rule("K23")
def test_a_step_that_cannot_sync_ends_the_disk() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, STEPPED)
    fill(engine, workers, 0, 1)
    disk.faults["sync", ".log"] = OSError(errno.EIO, "sync")
    with pytest.raises(BookieFailedError):
        fill(engine, workers, 1, 8)
    assert engine.state is EngineState.FAILED


@pytest.mark.rule("K23", "K13")
def test_a_checkpoint_behind_a_step_that_cannot_sync_covers_nothing() -> None:
    """The system tells of a failed sync once. The loop has not heard of it when the checkpoint's job begins."""
    disk = RecordingDisk()
    engine, workers = open_engine(disk, replace(STEPPED, journal_spares=0))
    fill(engine, workers, 0, 1)
    while not any(name == "checkpoint" for name, _, _ in workers.jobs):
        add(engine, 1, engine.last_entry(LedgerId(1)) + 1, size=1000)
        engine.when_durable(lambda error: None)
        workers.step()
    told: list[BaseException | None] = []
    engine.checkpoint(told.append)
    (_, step, step_done), (_, job, job_done) = workers.jobs
    workers.jobs.clear()
    before = disk.files()
    disk.faults["sync", ".log"] = OSError(errno.EIO, "sync")
    with pytest.raises(SyncFailedError) as failed:
        step()
    disk.faults.clear()
    with pytest.raises(SyncFailedError) as refused:
        job()
    step_done(None, failed.value)
    job_done(None, refused.value)
    assert disk.files() == before, "neither a mark nor the end of a journal file"
    assert engine.state is EngineState.FAILED and told != [None]
