"""Checkpoints: the order that survives a crash, a mark that is true, and nothing removed that is in doubt."""

from __future__ import annotations

import errno
from dataclasses import replace
from itertools import pairwise

import pytest

from bookkeeper.ids import IdRanges
from bookkeeper.storage.base.manifest import Manifest, read_manifest
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.index.index_segment import decode_page, read_segment
from tests.bookkeeper.storage.recording_disk import Op, QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, add, everything, lid, make_entry, open_engine, read

Answers = list[BaseException | None]


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def manifest_of(disk: RecordingDisk) -> Manifest:
    found = read_manifest(disk, "/ledgers")
    assert found is not None
    return found


def fill(engine: Engine, workers: QueueWorkers, ledger_id: int, begin: int, end: int, size: int = 60) -> None:
    """One group an entry."""
    for entry_id in range(begin, end):
        add(engine, ledger_id, entry_id, size=size)
        engine.when_durable(lambda error: None)
        workers.pump()


def checkpoint(engine: Engine, workers: QueueWorkers) -> BaseException | None:
    answers: Answers = []
    engine.checkpoint(answers.append)
    workers.pump()
    assert len(answers) == 1, "exactly one answer"
    return answers[0]


def where(ops: list[Op], kind: str, part: str) -> list[int]:
    return [at for at, op in enumerate(ops) if op.kind == kind and part in (op.target or op.path)]


@pytest.mark.rule("K13", "K1", "K2", "K3")
def test_logs_then_index_then_manifest_then_the_journal_and_what_is_dead(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, journal_spares=1))
    fill(engine, workers, 1, 0, 10, size=3000)
    fill(engine, workers, 2, 0, 2, size=3000)
    checkpoint(engine, workers)
    fill(engine, workers, 2, 2, 8, size=3000)
    engine.collect([lid(1)], lambda error: None)
    while workers.jobs and workers.jobs[0][0] != "checkpoint":
        workers.step()
    begin = len(disk.ops)
    workers.pump()
    ops = disk.ops[begin:]
    logs, index = where(ops, "sync", ".log"), where(ops, "sync", ".index")
    named = where(ops, "rename", "/ledgers/manifest")
    gone = where(ops, "unlink", ".log") + where(ops, "unlink", ".journal") + where(ops, "rename", ".spare")
    assert logs and len(index) == 2 and len(named) == 1 and gone, "all of it happened; the deletion is said twice"
    names = where(ops, "sync_directory", "/ledgers")
    durable = [at for at in names if at > named[0]]
    assert max(logs) < index[0] < names[0] < index[1] < names[1] < where(ops, "sync", "manifest.tmp")[0]
    assert where(ops, "sync", "manifest.tmp")[0] < named[0] < durable[0] < min(gone)
    assert not [at for at in where(ops, "write", ".log") if at > max(logs)], "nothing is written behind its sync"


@pytest.mark.rule("K15", "K13")
def test_what_the_mark_covers_needs_no_journal(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 1, 0, 7)
    engine.fence(lid(1), KEY, lambda error: None)
    engine.set_explicit_lac(lid(2), KEY, 4, b"blob", lambda error: None)
    assert checkpoint(engine, workers) is None
    wanted = everything(engine, workers)
    files = disk.files()
    name = max(name for name in files if name.endswith(".journal"))
    files[name] = files[name][:4096].ljust(len(files[name]), b"\0")  # its header only
    engine, workers = open_engine(RecordingDisk(files))
    assert engine.report.replayed_groups == 0
    assert everything(engine, workers) == wanted and 1 in wanted and 2 in wanted


@pytest.mark.rule("K15")
def test_what_comes_while_it_runs_is_not_covered_and_is_replayed(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 1, 0, 3)
    engine.checkpoint(lambda error: None)
    while workers.jobs[0][0] != "checkpoint":
        workers.step()
    add(engine, 1, 3)
    add(engine, 7, 0)
    engine.when_durable(lambda error: None)
    workers.pump()
    assert engine.stats.checkpoints == 1
    engine, workers = open_engine(disk)
    assert engine.report.replayed_records == 3, "entry 3, and ledger 7's key and entry"
    assert [read(engine, workers, 1, at) for at in range(4)] == [make_entry(1, at) for at in range(4)]
    assert read(engine, workers, 7, 0) == make_entry(7, 0)


@pytest.mark.rule("K14", "K10")
def test_the_mark_and_all_ids_only_rise(disk: RecordingDisk) -> None:
    marks: list[Manifest] = []
    for life in range(3):
        engine, workers = open_engine(disk)
        for number in range(3):
            marks.append(manifest_of(disk))
            fill(engine, workers, 1, 10 * life + number, 10 * life + number + 1, size=3000)
            assert checkpoint(engine, workers) is None
            assert checkpoint(engine, workers) is None, "and once more with nothing new"
    steps = [(m.file_id, m.sequence, m.next_file, m.next_log, m.next_segment) for m in marks]
    for one, other in pairwise(steps):
        assert all(before <= after for before, after in zip(one, other, strict=True)) and one[1] < other[1]


@pytest.mark.rule("K16", "K14")
@pytest.mark.parametrize(
    "fault",
    [("open", ".index"), ("write", ".index"), ("open", "manifest"), ("write", "manifest"), ("rename", "manifest")],
)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_without_a_new_mark_the_old_one_and_the_whole_journal_stay(
    disk: RecordingDisk, fault: tuple[str, str], code: int
) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 1, 0, 3)
    checkpoint(engine, workers)
    fill(engine, workers, 1, 3, 12, size=3000)
    before, names = manifest_of(disk), set(disk.list("/journal"))
    disk.faults[fault] = OSError(code, "for now")
    assert checkpoint(engine, workers) is not None
    assert manifest_of(disk) == before and names <= set(disk.list("/journal"))
    disk.faults.clear()
    wanted = everything(engine, workers)
    assert len(wanted[1][0]) == 12
    crashed, others = open_engine(RecordingDisk(disk.files()))
    assert everything(crashed, others) == wanted and crashed.report.limbo_reason is None
    assert checkpoint(engine, workers) is None, "the next try covers it"
    assert manifest_of(disk).sequence > before.sequence
    engine, workers = open_engine(disk)
    assert engine.report.replayed_groups == 0 and everything(engine, workers) == wanted


@pytest.mark.rule("K23")
@pytest.mark.parametrize("part", [".log", ".index", "manifest"])
def test_a_sync_that_fails_is_final_and_the_mark_stays(disk: RecordingDisk, part: str) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 1, 0, 5)
    before = manifest_of(disk)
    disk.faults["sync", part] = OSError(errno.EIO, "input/output error")
    assert checkpoint(engine, workers) is not None
    assert engine.state is EngineState.FAILED and manifest_of(disk) == before
    disk.faults.clear()
    assert checkpoint(engine, workers) is not None, "no later try may succeed"
    assert manifest_of(disk) == before


def two_logs(disk: RecordingDisk, *, shared: bool) -> tuple[Engine, QueueWorkers, str]:
    """A finished log with ledger 1 (and an entry of 2, if ``shared``), then others with ledger 2; the first's path."""
    engine, workers = open_engine(disk)
    fill(engine, workers, 1, 0, 2, size=1000)
    if shared:
        fill(engine, workers, 2, 0, 1)
    fill(engine, workers, 1, 2, 10, size=1000)
    fill(engine, workers, 2, 1, 12, size=1000)
    checkpoint(engine, workers)
    assert manifest_of(disk).logs[1].finished
    return engine, workers, "/ledgers/000001.log"


@pytest.mark.rule("G1")
@pytest.mark.parametrize("shared", [False, True])
def test_a_log_goes_when_nobody_in_it_lives_and_not_before(disk: RecordingDisk, shared: bool) -> None:
    engine, workers, path = two_logs(disk, shared=shared)
    engine.collect([lid(1)], lambda error: None)
    workers.pump()
    assert disk.exists(path) is shared
    engine.collect([lid(2)], lambda error: None)
    workers.pump()
    assert not disk.exists(path)
    assert 1 not in manifest_of(disk).logs


@pytest.mark.rule("G1")
def test_the_log_that_is_being_filled_stays_though_nobody_in_it_lives(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 1, 0, 2)
    engine.collect([lid(1)], lambda error: None)
    workers.pump()
    assert disk.exists("/ledgers/000001.log")
    fill(engine, workers, 2, 0, 2)
    checkpoint(engine, workers)
    for _ in range(2):
        assert read(engine, workers, 2, 1) == make_entry(2, 1)
        engine, workers = open_engine(disk)


@pytest.mark.rule("G4", "G1", "K20")
def test_a_log_without_a_sound_map_is_scanned_before_it_goes(disk: RecordingDisk) -> None:
    engine, workers, path = two_logs(disk, shared=True)
    disk.names[path].data[-1] ^= 1
    engine.collect([lid(1)], lambda error: None)
    workers.pump()
    assert disk.exists(path), "ledger 2 is in it"
    engine.collect([lid(2)], lambda error: None)
    workers.pump()
    assert not disk.exists(path)


@pytest.mark.rule("G4", "G1", "K20")
def test_a_log_that_cannot_be_read_through_stays_whoever_is_dead(disk: RecordingDisk) -> None:
    engine, workers, path = two_logs(disk, shared=False)
    disk.names[path].data[-1] ^= 1
    disk.names[path].data[5000] ^= 1
    for _ in range(2):
        engine.collect([lid(1), lid(2)], lambda error: None)
        workers.pump()
    assert disk.exists(path), "whose the damaged record was is not known"
    assert engine.stats.removed_logs >= 1, "the others went"


@pytest.mark.rule("K12")
def test_as_many_journal_files_as_wanted_are_kept_for_re_use(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, journal_spares=2))
    for number in range(4):
        fill(engine, workers, 1, 10 * number, 10 * number + 10, size=3000)
        checkpoint(engine, workers)
        assert len([name for name in disk.list("/journal") if name.endswith(".spare")]) <= 2
        assert len([name for name in disk.list("/journal") if name.endswith(".journal")]) == 1


@pytest.mark.rule("K19", "B5", "K3")
def test_a_merge_that_meets_damage_keeps_everything_and_asks_for_a_rebuild(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 1, 0, 5)
    checkpoint(engine, workers)
    (hurt,) = (name for name in disk.list("/ledgers") if name.endswith(".index"))
    disk.names[f"/ledgers/{hurt}"].data[4096] ^= 1
    at = 5
    while not manifest_of(disk).rebuild:
        assert at < 15, "a merge must have come by"
        fill(engine, workers, 1, at, at + 1)
        assert checkpoint(engine, workers) is None, "the checkpoint itself goes on"
        at += 1
    assert engine.stats.merges == 0 and disk.exists(f"/ledgers/{hurt}")
    wanted = {entry_id: make_entry(1, entry_id) for entry_id in range(at)}
    engine, workers = open_engine(disk)
    assert engine.report.rebuilt and everything(engine, workers)[1][0] == wanted
    assert not disk.exists(f"/ledgers/{hurt}") and not manifest_of(disk).rebuild


def test_a_segment_of_a_merge_holds_what_the_merged_ones_held(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    for number in range(8):
        fill(engine, workers, 1, number, number + 1)
        fill(engine, workers, 2 + number, 0, 1)
        checkpoint(engine, workers)
    assert engine.stats.merges
    places: dict[tuple[int, int], int] = {}
    for segment_id in manifest_of(disk).segments:
        file = disk.open(f"/ledgers/{segment_id:016x}.index")
        for extent in read_segment(file, segment_id).all_extents():
            page = decode_page(file.pread(8 * extent.count, extent.offset), extent, file.path)
            places.update({(extent.ledger_id, extent.first + n): found for n, found in enumerate(page) if found})
    assert set(places) == {(1, at) for at in range(8)} | {(2 + at, 0) for at in range(8)}


def said_deleted(disk: RecordingDisk, segment_id: int) -> list[tuple[int, int]]:
    file = disk.open(f"/ledgers/{segment_id:016x}.index")
    found = read_segment(file, segment_id)
    assert segment_id != manifest_of(disk).deletions or not list(found.ledger_ids()), "it says nothing else"
    return list(found.dropped)


@pytest.mark.rule("K19", "B3", "M6")
def test_every_deletion_is_in_two_segments_whatever_is_merged(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    assert manifest_of(disk).deletions is None, "nothing was deleted"
    lists = []
    for number in range(1, 30):
        fill(engine, workers, number, 0, 2)
        if number % 4 == 0:
            engine.collect([lid(number - 1)], lambda error: None, never_again=[(1000 + number, 1002 + number)])
            workers.pump()
        checkpoint(engine, workers)
        wanted, manifest = list(engine.dropped), manifest_of(disk)
        assert len(manifest.segments) <= CONFIG.index_segments + 2
        others = IdRanges()
        for key in manifest.segments:
            if key != manifest.deletions:
                others.update(said_deleted(disk, key))
        assert list(others) == wanted
        if manifest.deletions is not None:
            assert said_deleted(disk, manifest.deletions) == wanted
            lists.append(manifest.deletions)
        assert (manifest.deletions is None) is not bool(wanted)
        if number % 9 == 0:
            engine, workers = open_engine(disk)
            assert list(engine.dropped) == wanted
    there = {f"/ledgers/{key:016x}.index" for key in manifest_of(disk).segments}
    assert {name for name in disk.files() if name.endswith(".index")} == there, "old lists are removed"
    assert engine.stats.merges and 7 < len(set(lists)) < len(lists), "written anew only where it must be"


@pytest.mark.rule("K27", "K16", "G4", "G1")
@pytest.mark.parametrize("fault", ["open", "read"])
def test_a_log_that_cannot_be_read_stays_and_the_bookie_goes_on(disk: RecordingDisk, fault: str) -> None:
    engine, workers, path = two_logs(disk, shared=False)
    disk.faults[fault, "000001.log"] = OSError(errno.EIO, "bad sector")
    answers: Answers = []
    for _ in range(2):
        engine.collect([lid(1)], answers.append)
        workers.pump()
    assert answers == [None, None] and engine.state is EngineState.WRITABLE
    assert disk.exists(path) and 1 in manifest_of(disk).logs, "whose it is could not be asked"
    assert [note for note in manifest_of(disk).quarantined if path in note and "bad sector" in note], "and it is named"
    assert len(manifest_of(disk).quarantined) == 1, "once"
    assert not manifest_of(disk).rebuild
    disk.faults.clear()
    engine.collect([], answers.append)
    workers.pump()
    assert not disk.exists(path), "once it can be read it goes like any other"


@pytest.mark.rule("K28", "K16")
def test_too_few_descriptors_for_a_look_at_a_log_are_a_matter_of_trying_again(disk: RecordingDisk) -> None:
    engine, workers, path = two_logs(disk, shared=False)
    disk.faults["open", "000001.log"] = OSError(errno.EMFILE, "too many open files")
    answers: Answers = []
    engine.collect([lid(1)], answers.append)
    workers.pump()
    assert isinstance(answers[0], OSError) and engine.state is EngineState.WRITABLE
    assert disk.exists(path) and not manifest_of(disk).quarantined
    disk.faults.clear()
    engine.collect([], answers.append)
    workers.pump()
    assert answers[1:] == [None] and not disk.exists(path)


@pytest.mark.rule("K27", "K16", "K19")
@pytest.mark.parametrize("fault", ["open", "read"])
def test_a_merge_that_cannot_read_a_segment_is_left_out_and_the_bookie_goes_on(disk: RecordingDisk, fault: str) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 1, 0, 1)
    checkpoint(engine, workers)
    (hurt,) = (name for name in disk.list("/ledgers") if name.endswith(".index"))
    disk.faults[fault, hurt] = OSError(errno.EIO, "bad sector")
    at = 1
    while not manifest_of(disk).rebuild:
        assert at < 15, "a merge must have come by"
        fill(engine, workers, 1, at, at + 1)
        assert checkpoint(engine, workers) is None
        assert engine.state is EngineState.WRITABLE
        at += 1
    for _ in range(12):
        fill(engine, workers, 1, at, at + 1)
        assert checkpoint(engine, workers) is None
        at += 1
    assert len(manifest_of(disk).segments) <= CONFIG.index_segments + 1, "what is newer is merged without it"
    assert disk.exists(f"/ledgers/{hurt}")
    assert [note for note in manifest_of(disk).quarantined if hurt in note and "bad sector" in note]
    disk.faults.clear()
    engine, workers = open_engine(disk)
    assert engine.report.rebuilt and engine.report.limbo_reason is None
    assert everything(engine, workers)[1][0] == {entry_id: make_entry(1, entry_id) for entry_id in range(at)}


@pytest.mark.rule("K28", "K16")
def test_too_few_descriptors_for_a_merge_are_a_matter_of_trying_again(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    for at in range(3):
        fill(engine, workers, 1, at, at + 1)
        checkpoint(engine, workers)
    (first, *_) = (name for name in disk.list("/ledgers") if name.endswith(".index"))
    disk.faults["open", first] = OSError(errno.EMFILE, "too many open files")
    fill(engine, workers, 1, 3, 4)
    assert isinstance(checkpoint(engine, workers), OSError) and engine.state is EngineState.WRITABLE
    disk.faults.clear()
    assert checkpoint(engine, workers) is None
    assert engine.stats.merges == 1 and not manifest_of(disk).rebuild and not manifest_of(disk).quarantined


@pytest.mark.rule("K19")
@pytest.mark.parametrize("hurt_at", [0, 1])
def test_damage_that_a_merge_met_is_remembered_until_a_restart_has_rebuilt_the_index(
    disk: RecordingDisk, hurt_at: int
) -> None:
    engine, workers = open_engine(disk)
    for at in range(2):
        fill(engine, workers, 1, 300 * at, 300 * at + 300)
        checkpoint(engine, workers)
    hurt = list(manifest_of(disk).segments)[hurt_at]
    disk.names[f"/ledgers/{hurt:016x}.index"].data[4096] ^= 1
    flags: list[bool] = []
    for at in range(600, 640):
        fill(engine, workers, 1, at, at + 1)
        assert checkpoint(engine, workers) is None
        flags.append(manifest_of(disk).rebuild)
        assert hurt in manifest_of(disk).segments
        assert len(manifest_of(disk).segments) <= CONFIG.index_segments + 1, "newer ones are still merged"
    assert flags == sorted(flags) and flags[-1], "once it is known it stays known"
    assert len(manifest_of(disk).quarantined) == 1
    assert engine.stats.merges
    engine, workers = open_engine(disk)
    assert engine.report.rebuilt and not manifest_of(disk).rebuild
    assert set(everything(engine, workers)[1][0]) == set(range(640))
    fill(engine, workers, 1, 640, 641)
    checkpoint(engine, workers)
    assert not manifest_of(disk).rebuild


def test_a_list_of_deletions_for_which_there_is_no_space_leaves_no_file(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    for ledger_id in (1, 2):
        fill(engine, workers, ledger_id, 0, 3)
    checkpoint(engine, workers)
    path = f"/ledgers/{manifest_of(disk).next_segment + 1:016x}.index"
    disk.faults["write", path] = OSError(errno.ENOSPC, "full")
    answers: Answers = []
    engine.collect({lid(1)}, answers.append)
    workers.pump()
    assert len(answers) == 1 and answers[0] is not None
    assert path not in disk.left_open and path not in disk.files(), "a part of one takes space, and is none"
    disk.faults.clear()
    checkpoint(engine, workers)
    assert manifest_of(disk).deletions is not None
