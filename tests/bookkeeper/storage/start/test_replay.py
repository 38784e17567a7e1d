"""Starts: locked, marked, replayed, covered, in this order; and the same again after one that did not get through."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from bookkeeper.errors import BookKeeperError, DataUnknownError, DirectoryLockedError, LedgerFencedError
from bookkeeper.storage.checkpoint.manifest import Manifest, read_manifest
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, GroupHeader, JournalGroup, padded, read_groups
from bookkeeper.storage.results import NOTHING_KNOWN, EngineState, PublishedProgress
from bookkeeper.storage.start.replay import start
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    Life,
    State,
    add,
    everything,
    lid,
    make_entry,
    open_engine,
    read,
    standard_life,
)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def a_life() -> tuple[dict[str, bytes], State]:
    """Everything there is: entries in logs and in the journal, fences, an explicit LAC, a dropped ledger; a crash."""
    disk = RecordingDisk()
    life = Life(disk)
    for entry_id in range(4):
        life.add(1, entry_id)
        life.add(2, entry_id, size=900)
        life.pump()
    life.fence(9)
    life.checkpoint()
    life.pump()
    life.collect(1)
    life.pump()
    life.add(2, 4, 5, 6, size=900)
    life.add(3, 0, 7)
    life.pump()
    life.explicit_lac(2, 5)
    life.fence(3)
    life.pump()
    return disk.files(), everything(life.engine, life.workers)


def manifest_of(disk: RecordingDisk) -> Manifest:
    found = read_manifest(disk, "/ledgers")
    assert found is not None
    return found


def groups_of(disk: RecordingDisk) -> list[tuple[str, JournalGroup]]:
    """The groups in the journal, each with its file's name, in order."""
    found: list[tuple[str, JournalGroup]] = []
    for name in sorted(name for name in disk.files() if name.endswith(".journal")):
        items = read_groups(disk.open(name, write=False), int(name[9:-8], 16))
        found += [(name, item) for item in items if isinstance(item, JournalGroup)]
    return found


@pytest.mark.rule("B11")
@pytest.mark.parametrize("taken", ["/journal/lock", "/ledgers/lock"])
def test_a_directory_in_use_is_left_alone_and_the_other_one_let_go(disk: RecordingDisk, taken: str) -> None:
    disk.locks.add(taken)
    with pytest.raises(DirectoryLockedError, match=taken.removesuffix("/lock")):
        start(CONFIG, disk, 0, NOTHING_KNOWN)
    assert disk.locks == {taken} and disk.ops == []


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


def test_new_directories_are_told_from_old_ones(disk: RecordingDisk) -> None:
    engine, _ = open_engine(disk)
    assert engine.report.fresh and engine.report.clean and list(engine.ledgers()) == []
    engine.close_blocking()
    engine, workers = open_engine(disk)
    assert not engine.report.fresh and engine.report.clean and not engine.report.rebuilt
    assert not workers.jobs, "no worker has anything to do yet"


def test_a_directory_keeps_the_id_it_was_made_with(disk: RecordingDisk) -> None:
    for given in (77, 0, 77):
        engine = Engine.open(CONFIG, disk, QueueWorkers(), known=PublishedProgress(directory_id=given))
        assert manifest_of(disk).directory_id == 77
        engine.close_blocking()


@pytest.mark.rule("K32", "K10", "K14")
@pytest.mark.parametrize(
    ("known", "said"),
    [
        (PublishedProgress(boot=4), "knows of start 0, the bookie's data have seen start 4"),
        (PublishedProgress(sequence=50), "50 groups were durable, 14 are known here"),
        (PublishedProgress(sequence=15), "15 groups were durable, 14 are known here"),
        (PublishedProgress(boot=4, sequence=50, file_id=99), "older copy"),
    ],
)
def test_a_directory_that_knows_less_than_is_known_of_it_has_lost_data(known: PublishedProgress, said: str) -> None:
    files, wanted = a_life()
    disk, workers = RecordingDisk(files), QueueWorkers()
    engine = Engine.open(CONFIG, disk, workers, boot=5, known=known)
    assert said in str(engine.report.limbo_reason) and "put back from an older copy" in str(engine.report.limbo_reason)
    assert isinstance(read(engine, workers, 77, 0), DataUnknownError)
    mark = manifest_of(disk)
    assert mark.boot == 5 and mark.file_id > known.file_id and mark.sequence >= known.sequence
    engine.narrow_limbo([])
    assert everything(engine, workers) == wanted
    add(engine, 2, 7)
    engine.when_durable(lambda error: None)
    workers.pump()
    assert engine.durable_position > (known.file_id, known.sequence)
    disk.locks.clear()
    again = Engine.open(CONFIG, disk, QueueWorkers(), boot=6, known=known)
    assert again.report.limbo_reason == engine.report.limbo_reason and again.report.quarantined == []


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


@pytest.mark.rule("K17", "K14", "K10")
def test_any_number_of_starts_and_crashes_ends_with_the_same() -> None:
    files, wanted = a_life()
    disk = RecordingDisk(files)
    marks: list[tuple[int, int, int]] = []
    for _ in range(6):
        engine, workers = open_engine(disk)
        assert everything(engine, workers) == wanted
        mark = manifest_of(disk)
        marks.append((mark.file_id, mark.sequence, mark.next_log))
    assert marks == sorted(marks) and len({file_id for file_id, _, _ in marks}) == 6
    assert len(disk.list("/journal")) <= CONFIG.journal_spares + 3
    with pytest.raises(LedgerFencedError):
        add(engine, 1, 99)


@pytest.mark.rule("B3", "M6", "K17")
def test_a_ledger_whose_removal_was_only_journalled_does_not_come_back(disk: RecordingDisk) -> None:
    life = Life(disk)
    life.add(1, 0, 1)
    life.add(2, 0)
    life.checkpoint()
    life.pump()
    disk.faults["rename", "manifest"] = OSError(errno.EMFILE, "too many open files")
    life.collect(1)
    life.pump()
    disk.faults.clear()
    assert life.truth.gone == {}, "not acknowledged, but durable"
    for _ in range(4):
        engine, workers = open_engine(disk)
        assert engine.is_fenced(lid(1)) and set(everything(engine, workers)) == {2}


class Stop(BaseException):
    """The process ends here."""


class Interrupted(RecordingDisk):
    """Ends, or fails, at one call."""

    def __init__(self, files: dict[str, bytes], at: int, error: BaseException) -> None:
        super().__init__(files)
        self.at, self.error = at, error

    def before(self, call: str, path: str) -> None:
        self.at -= 1
        if self.at == 0 or (self.at < 0 and isinstance(self.error, Stop)):
            raise self.error


@pytest.mark.rule("K17", "K28", "K3")
@pytest.mark.parametrize("error", [Stop(), OSError(errno.EIO, "input/output error"), OSError(errno.EMFILE, "too many")])
def test_a_start_that_ends_anywhere_is_made_good_by_the_next(error: BaseException) -> None:
    files, wanted = a_life()
    through = False
    at = 0
    while not through:
        at += 1
        assert at < 500
        disk = Interrupted(files, at, error)
        try:
            open_engine(disk)
        except (Stop, OSError, BookKeeperError):
            assert not disk.locks, "whoever tries again can"
        else:
            through = disk.at > 0
        engine, workers = open_engine(RecordingDisk(disk.files()))
        assert everything(engine, workers) == wanted, at
        assert engine.report.limbo_reason is None and engine.report.quarantined == []
    assert at > 40


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


@pytest.mark.rule("K8", "K9")
def test_a_torn_last_group_is_cut_and_reported_and_its_sequence_given_out_again(disk: RecordingDisk) -> None:
    life = Life(disk)
    life.add(1, 0)
    life.pump()
    before, wanted = disk.files(), everything(life.engine, life.workers)
    add(life.engine, 3, 0, size=900)
    life.fence(3)
    life.pump()
    name, group = groups_of(disk)[-1]
    begin = group.header.offset
    before[name] = disk.files()[name][: begin + 512].ljust(len(before[name]), b"\0")
    disk = RecordingDisk(before)
    engine, workers = open_engine(disk)
    assert engine.report.torn_tail is not None and name in engine.report.torn_tail
    assert engine.report.limbo_reason is None
    assert everything(engine, workers) == wanted
    engine.fence(lid(3), KEY, lambda error: None)
    workers.pump()
    engine, _ = open_engine(disk)
    assert engine.report.torn_tail is None and engine.report.limbo_reason is None and engine.is_fenced(lid(3))


@pytest.mark.rule("K18", "K9")
def test_after_a_clean_stop_there_is_no_torn_tail(disk: RecordingDisk) -> None:
    standard_life(disk)
    files = disk.files()
    assert open_engine(RecordingDisk(files))[0].report.limbo_reason is None
    name, group = groups_of(disk)[-1]
    after, mark = group.header.offset + padded(len(group.data) - GROUP_HEADER), manifest_of(disk)
    begun = GroupHeader(0, mark.file_id, mark.sequence + 1, after, mark.sequence, 3, 2000, 77).encode()
    files[name] = files[name][:after] + begun + files[name][after + len(begun) :]
    engine, _ = open_engine(RecordingDisk(files))
    assert engine.report.limbo_reason is not None and "clean stop" in engine.report.limbo_reason


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


@pytest.mark.rule("K26", "V8")
def test_a_full_disk_is_started_read_only_and_serves(disk: RecordingDisk) -> None:
    config: StorageConfig = replace(CONFIG, reserve_bytes=8192)
    engine, workers = open_engine(disk, config)
    entry = add(engine, 1, 0)
    engine.when_durable(lambda error: None)
    workers.pump()

    class Full(RecordingDisk):
        """Has room for nothing new until the reserve is given up."""

        def before(self, call: str, path: str) -> None:
            if call == "write" and "/ledgers/reserve" in self.names:
                raise OSError(errno.ENOSPC, "no space left", path)

    full = Full(disk.files())
    full.free = 0
    engine, workers = open_engine(full, config)
    assert engine.state is EngineState.READ_ONLY and not full.exists("/ledgers/reserve")
    assert read(engine, workers, 1, 0) == entry == make_entry(1, 0)
    answers: list[BaseException | None] = []
    engine.fence(lid(1), KEY, answers.append)
    workers.pump()
    assert answers == [None]


@pytest.mark.rule("K19", "K27")
def test_an_index_that_the_disk_does_not_give_is_rebuilt_from_the_logs() -> None:
    files, wanted = a_life()
    disk = RecordingDisk(files)
    disk.faults["read", ".index"] = OSError(errno.EIO, "input/output error")
    engine, workers = open_engine(disk)
    assert engine.report.rebuilt and engine.report.quarantined
    disk.faults.clear()
    assert everything(engine, workers) == wanted


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
