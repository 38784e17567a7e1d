"""What was found is covered before anyone is served, and only then does anything go."""

from __future__ import annotations

import pytest

from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.start.crashed_life import a_life, groups_of, manifest_of
from tests.bookkeeper.storage.workload import (
    CONFIG,
    add,
    everything,
    make_entry,
    open_engine,
    read,
)


@pytest.mark.rule("K17")
def test_what_was_replayed_is_covered_before_anyone_is_served() -> None:
    files, wanted = a_life()
    disk = RecordingDisk(files)
    engine, workers = open_engine(disk)
    assert not engine.report.clean and engine.report.replayed_groups > 0 and engine.report.limbo_reason is None
    assert everything(engine, workers) == wanted
    assert groups_of(disk) == [], "whatever an earlier life left in its file"
    engine, workers = open_engine(disk)
    assert engine.report.replayed_groups == 0 and everything(engine, workers) == wanted


@pytest.mark.rule("K3")
def test_only_files_that_no_manifest_names_are_removed_and_only_our_own() -> None:
    files, wanted = a_life()
    for name in ("notes.txt", "bookie.log", "old.index"):
        files[f"/ledgers/{name}"] = b"an operator's"
    files["/ledgers/00000000000000ff.index"] = b"left over from a checkpoint that did not get through"
    files["/ledgers/0000ff.log"] = b"left over, too"
    disk = RecordingDisk(files)
    engine, workers = open_engine(disk)
    assert everything(engine, workers) == wanted and engine.report.quarantined == []
    for name in ("notes.txt", "bookie.log", "old.index"):
        assert disk.read_file(f"/ledgers/{name}") == b"an operator's"
        disk.unlink(f"/ledgers/{name}")
    mark = manifest_of(disk)
    assert {name for name in disk.list("/ledgers") if name.endswith(".log")} == {f"{key:06x}.log" for key in mark.logs}
    assert {name for name in disk.list("/ledgers") if name.endswith(".index")} == {
        f"{key:016x}.index" for key in mark.segments
    }
    named = max(at for at, op in enumerate(disk.ops) if op.target == "/ledgers/manifest")
    gone = [at for at, op in enumerate(disk.ops) if op.kind == "unlink" and op.path.endswith((".log", ".index"))]
    assert gone and min(gone) > named, "the manifest first"


def test_a_start_leaves_merges_to_a_later_checkpoint_until_there_are_twice_as_many_segments() -> None:
    """Whoever starts waits for it, and a merge reads and writes all of what it merges. Starts alone do not pile
    segments up."""
    counts: list[int] = []
    disk = RecordingDisk()
    for life in range(12):
        engine, workers = open_engine(disk)
        counts.append(len(manifest_of(disk).segments))
        add(engine, life, 0)
        engine.when_durable(lambda error: None)
        workers.pump()
    assert CONFIG.index_segments == 3 and counts == [0, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5]
    engine.checkpoint(lambda error: None)
    workers.pump()
    assert len(manifest_of(disk).segments) < 3 and engine.stats.merges == 1
    for life in range(12):
        assert read(engine, workers, life, 0) == make_entry(life, 0)


@pytest.mark.rule("K11")
def test_a_spare_journal_file_that_was_not_written_to_its_end_is_none() -> None:
    disk = RecordingDisk(a_life()[0])
    for name in disk.list("/journal"):
        if name.endswith(".spare"):
            disk.unlink(f"/journal/{name}")
    disk.open("/journal/ffff.spare", create=True).pwrite(bytes(4096), 0)
    open_engine(disk)
    (newest,) = [name for name in disk.list("/journal") if name.endswith(".journal")]
    assert len(disk.names[f"/journal/{newest}"].data) == CONFIG.journal_file_bytes
    assert "ffff.spare" not in disk.list("/journal")
