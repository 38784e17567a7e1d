"""The markers of directories that are in use."""

from __future__ import annotations

import pytest

from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.start.crashed_life import a_life
from tests.bookkeeper.storage.workload import (
    everything,
    open_engine,
)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


@pytest.mark.rule("K22")
def test_both_directories_say_that_they_are_in_use_before_anything_else_is_written(disk: RecordingDisk) -> None:
    open_engine(disk)
    steps = [(op.kind, op.path) for op in disk.ops]
    assert steps[:8] == [
        (kind, path if kind == "sync_directory" else f"{path}/dirty")
        for path in ("/ledgers", "/journal")
        for kind in ("create", "write", "sync", "sync_directory")
    ]


@pytest.mark.rule("K22")
def test_a_marker_that_is_there_is_made_durable_before_anything_is_written() -> None:
    files, _ = a_life()
    files["/ledgers/dirty"] = b""  # a crash may take its bytes
    disk = RecordingDisk(files)
    open_engine(disk)
    assert [(op.kind, op.path) for op in disk.ops[:2]] == [
        ("sync_directory", "/ledgers"),
        ("sync_directory", "/journal"),
    ]


@pytest.mark.rule("K22")
@pytest.mark.parametrize("lost", ["/ledgers/dirty", "/journal/dirty"])
def test_one_marker_is_enough_to_know_that_the_last_life_did_not_end(lost: str) -> None:
    files, _ = a_life()
    del files[lost]
    engine, _ = open_engine(RecordingDisk(files))
    assert not engine.report.clean and engine.report.replayed_groups > 0


@pytest.mark.rule("K22", "K18")
def test_without_its_markers_a_directory_whose_manifest_says_nothing_of_a_clean_stop_had_none() -> None:
    """Two missing files were taken for a clean stop, after which a missing journal is no loss."""
    files, wanted = a_life()
    kept = {name: data for name, data in files.items() if not name.endswith("/dirty")}
    engine, workers = open_engine(RecordingDisk(kept))
    assert not engine.report.clean and engine.report.limbo_reason is None and everything(engine, workers) == wanted
    kept = {name: data for name, data in kept.items() if not name.endswith(".journal")}
    engine, _ = open_engine(RecordingDisk(kept))
    assert engine.report.limbo_reason is not None
