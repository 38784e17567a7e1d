"""Files of another bookie's directory are refused, and left as they are."""

from __future__ import annotations

import pytest

from bookkeeper.storage.base.results import PublishedProgress
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.start.directory_id import ForeignDirectoryError, directory_id_of, is_unused
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, add


def directory(number: int, boot: int = 1) -> dict[str, bytes]:
    """The files of one bookie, as a crash has left them: manifest, logs, a segment, journal files."""
    disk, workers = RecordingDisk(), QueueWorkers()
    engine = Engine.open(CONFIG, disk, workers, boot=boot, known=PublishedProgress(directory_id=number))
    for entry_id in range(12):
        add(engine, 1, entry_id, size=900)
        engine.when_durable(lambda error: None)
        workers.pump()
        if entry_id == 6:
            engine.checkpoint(lambda error: None)
            workers.pump()
    return disk.files()


@pytest.mark.rule("K32", "B11")
@pytest.mark.parametrize("kind", ["manifest", ".log", ".index", ".journal", "everything"])
@pytest.mark.parametrize("known", [77, 0])
def test_files_exchanged_between_two_bookies_are_refused_and_nothing_is_written(kind: str, known: int) -> None:
    """Every directory had the id 0: with its own cookie in place any bookie's data was taken for this one's."""
    mine, theirs = directory(77), directory(88)
    foreign = {name: data for name, data in theirs.items() if kind == "everything" or name.endswith(kind)}
    assert foreign
    if kind == "everything" and not known:
        known = 77
    disk = RecordingDisk({**mine, **foreign})
    with pytest.raises(ForeignDirectoryError, match=r"another bookie's directory .*nothing was changed here") as caught:
        Engine.open(CONFIG, disk, QueueWorkers(), boot=2, known=PublishedProgress(directory_id=known))
    assert {caught.value.directory_id} <= {77, 88} and not disk.ops and not disk.locks


@pytest.mark.rule("K32")
def test_a_foreign_log_with_a_number_of_its_own_is_not_removed_as_left_over() -> None:
    mine, theirs = directory(77), directory(88)
    log = next(data for name, data in theirs.items() if name.endswith(".log"))
    disk = RecordingDisk({**mine, "/ledgers/0000ff.log": log})
    with pytest.raises(ForeignDirectoryError, match=r"0000ff\.log"):
        Engine.open(CONFIG, disk, QueueWorkers(), boot=2, known=PublishedProgress(directory_id=77))
    assert disk.files()["/ledgers/0000ff.log"] == log


@pytest.mark.rule("K32")
def test_a_directory_of_before_there_were_ids_gets_one_and_keeps_its_files() -> None:
    files = directory(0, boot=0)
    for _ in range(2):
        disk = RecordingDisk(files)
        engine = Engine.open(CONFIG, disk, QueueWorkers(), boot=2, known=PublishedProgress(directory_id=55))
        assert engine.report.limbo_reason is None and directory_id_of(disk, CONFIG) == 55
        files = disk.files()
    with pytest.raises(ForeignDirectoryError):
        Engine.open(CONFIG, RecordingDisk(files), QueueWorkers(), boot=3, known=PublishedProgress(directory_id=56))


def test_which_directories_are_unused() -> None:
    assert is_unused(RecordingDisk(), CONFIG)
    assert is_unused(
        RecordingDisk({"/ledgers/VERSION": b"", "/journal/0.spare": b"", "/ledgers/notes.log": b""}), CONFIG
    )
    for name, data in directory(77).items():
        used = name.endswith(("manifest", ".log", ".index", ".journal"))
        assert is_unused(RecordingDisk({name: data}), CONFIG) is not used, name
        if used:
            assert directory_id_of(RecordingDisk({name: data}), CONFIG) == 77
            damaged = RecordingDisk({name: data[:20]})
            assert directory_id_of(damaged, CONFIG) == 0, "said elsewhere"
