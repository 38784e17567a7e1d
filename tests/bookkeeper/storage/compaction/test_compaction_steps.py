"""Compaction on a whole disk: what lives stays, the space comes back, and where something is wrong nothing goes."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.errors import BookieFailedError
from bookkeeper.seams import Space
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.entry_log.entry_log_file import log_ids, log_name, read_map
from bookkeeper.storage.index.moved_entries import MovedEntries
from bookkeeper.storage.ledgers.known_ledgers import KnownLedgers
from bookkeeper.storage.updates.ledger_updates import LedgerUpdates
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, add, everything, lid, open_engine, read, read_batch

Answers = list[BaseException | None]


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def filled(disk: RecordingDisk, *, rounds: int = 12) -> tuple[Engine, QueueWorkers]:
    """Several entry logs in which ledger 1 has nine parts of ten, and ledgers 2 and 3 the rest."""
    engine, workers = open_engine(disk)
    for number in range(rounds):
        for at in range(9):
            add(engine, 1, 9 * number + at, size=300)
        add(engine, 2, number, size=300)
        add(engine, 3, 3 * number, size=20)
        engine.checkpoint(lambda error: None)
        workers.pump()
    engine.fence(lid(2), KEY, lambda error: None)
    engine.set_explicit_lac(lid(3), KEY, 40, b"blob", lambda error: None)
    workers.pump()
    return engine, workers


def drop(engine: Engine, workers: QueueWorkers, *ledgers: int) -> None:
    engine.collect(frozenset(map(lid, ledgers)), lambda error: None)
    workers.pump()


def compact(engine: Engine, workers: QueueWorkers, *, major: bool = True) -> BaseException | None:
    answers: Answers = []
    engine.compact(answers.append, major=major)
    workers.pump()
    assert len(answers) == 1, "exactly one answer"
    return answers[0]


@pytest.mark.rule("G3")
def test_what_lives_is_copied_and_the_space_comes_back(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    before, logs = everything(engine, workers), log_ids(disk, "/ledgers")
    assert len(logs) > 4 and before.keys() == {2, 3}
    assert compact(engine, workers) is None
    assert everything(engine, workers) == before
    left = log_ids(disk, "/ledgers")
    assert left[0] == logs[-1], "the log that is being filled, and the copies"
    assert len(left) == 3
    assert engine.stats.compacted_logs == len(logs) - 1
    assert engine.stats.compaction_reclaimed_bytes > 5 * engine.stats.compaction_copied_bytes > 0
    again, workers = open_engine(disk)
    assert again.report.limbo_reason is None and everything(again, workers) == before


@pytest.mark.rule("B3", "K19")
def test_an_index_that_is_rebuilt_from_compacted_logs_keeps_everything(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    before = everything(engine, workers)
    assert compact(engine, workers) is None
    engine.close(lambda error: None)
    workers.pump()
    files = disk.files()
    for name in [name for name in files if name.endswith(".index")]:
        files[name] = files[name][:100]
    again, workers = open_engine(RecordingDisk(files))
    assert again.report.rebuilt
    after = everything(again, workers)
    assert {key: after[key] for key in before} == before, "fences, keys and explicit LACs were copied, too"


@pytest.mark.rule("B3", "K19")
def test_the_fence_of_a_ledger_with_an_explicit_lac_is_copied(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 3, 0)
    engine.set_explicit_lac(lid(3), KEY, 40, b"older", lambda error: None)
    engine.set_explicit_lac(lid(3), KEY, 50, b"newer", lambda error: None)
    engine.fence(lid(3), KEY, lambda error: None)
    for number in range(4):
        for at in range(9):
            add(engine, 1, 9 * number + at, size=300)
        engine.checkpoint(lambda error: None)
        workers.pump()
    first = log_ids(disk, "/ledgers")[0]
    drop(engine, workers, 1)
    before = everything(engine, workers)
    assert compact(engine, workers) is None
    assert first not in log_ids(disk, "/ledgers"), "the log with the fence was compacted"
    engine.close(lambda error: None)
    workers.pump()
    files = disk.files()
    for name in [name for name in files if name.endswith(".index")]:
        files[name] = files[name][:100]
    again, workers = open_engine(RecordingDisk(files))
    assert again.report.rebuilt and again.is_fenced(lid(3))
    assert everything(again, workers)[3] == before[3]


def test_batches_and_single_reads_are_as_before_in_a_ledger_with_holes(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    assert compact(engine, workers) is None
    assert len(read_batch(engine, workers, 2, 0)) == 12
    assert [len(read_batch(engine, workers, 3, 3 * number)) for number in range(12)] == [1] * 12
    add(engine, 3, 34)
    assert len(read_batch(engine, workers, 3, 33)) == 2


@pytest.mark.rule("G4")
def test_a_log_with_a_damaged_record_is_left_as_it_is(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    before = everything(engine, workers)
    bad = log_ids(disk, "/ledgers")[1]
    name = f"/ledgers/{bad:06x}.log"
    data = disk.names[name].data
    at = bytes(data).index(b"1/")
    data[at] ^= 1
    assert compact(engine, workers) is None, "the others are compacted"
    assert bad in log_ids(disk, "/ledgers")
    assert list(engine.compactor.schedule.left) == [bad]
    assert any("is damaged at byte" in place and name in place for place in engine._unknowns.quarantined)
    assert everything(engine, workers) == before
    assert compact(engine, workers) is None
    assert bad in log_ids(disk, "/ledgers"), "it is not touched again"
    again, workers = open_engine(RecordingDisk(disk.files()))
    assert everything(again, workers) == before


@pytest.mark.rule("G4", "B5")
def test_a_log_with_a_ledger_that_the_index_does_not_know_is_left_as_it_is(
    disk: RecordingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index has lost a ledger that nobody has deleted: what the log holds of it is the last that there is."""
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    disk = RecordingDisk(disk.files())
    engine, workers = open_engine(disk)
    held = {
        log_id
        for log_id in log_ids(disk, "/ledgers")
        if 2 in read_map(disk.open(f"/ledgers/{log_name(log_id)}", write=False), log_id)[1]
    }
    known = engine._ledgers.ledgers
    known.drop(2)
    known.dropped.discard(2)
    knowing = KnownLedgers._knowing
    monkeypatch.setattr(KnownLedgers, "_knowing", lambda self, key: [] if key == 2 else knowing(self, key))
    assert known.get(2) is None and len(held) > 2
    assert compact(engine, workers) is None
    assert held <= set(log_ids(disk, "/ledgers")) and engine.suspects == {2}


@pytest.mark.rule("G3")
def test_an_entry_that_was_written_again_meanwhile_keeps_its_new_place(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    answers: Answers = []
    engine.compact(answers.append, major=True)
    while not any(moved.ledger_id == 3 for moved in _moves(engine)):
        assert workers.step()
    newer = add(engine, 3, 0, size=20, lac=7)
    workers.pump()
    assert answers == [None] and read(engine, workers, 3, 0) == newer
    engine.checkpoint(lambda error: None)
    workers.pump()
    again, workers = open_engine(RecordingDisk(disk.files()))
    assert read(again, workers, 3, 0) == newer


def _moves(engine: Engine) -> list[MovedEntries]:
    target = engine.compactor.steps._target
    return target.moves if target is not None else []


@pytest.mark.rule("G3")
def test_a_ledger_that_is_deleted_meanwhile_does_not_come_back(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    answers: Answers = []
    engine.compact(answers.append, major=True)
    while not any(moved.ledger_id == 3 for moved in _moves(engine)):
        assert workers.step()
    drop(engine, workers, 3)
    assert answers == [None] and set(everything(engine, workers)) == {2}
    again, workers = open_engine(RecordingDisk(disk.files()))
    assert set(everything(again, workers)) == {2}


@pytest.mark.rule("G6")
def test_a_full_disk_is_compacted_from_the_reserve(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, reserve_bytes=65536))
    for number in range(12):
        for at in range(9):
            add(engine, 1, 9 * number + at, size=300)
        add(engine, 2, number, size=300)
        engine.checkpoint(lambda error: None)
        workers.pump()
    drop(engine, workers, 1)
    before = everything(engine, workers)

    class Full(dict[tuple[str, str], OSError]):
        def items(self):  # type: ignore[no-untyped-def]
            full = OSError(errno.ENOSPC, "no space left")
            return [(("write", "/ledgers"), full)] if "/ledgers/reserve" in disk.names else []

    class Tight(RecordingDisk):
        def space(self, path: str) -> Space:
            return Space(1 << 41, 0 if "/ledgers/reserve" in self.names else 65536)

    disk.faults, disk.__class__ = Full(), Tight
    engine.check_space()
    assert engine.state is EngineState.READ_ONLY
    assert compact(engine, workers) is None
    assert engine.compactor.schedule.stopped_by is None
    assert engine.stats.compacted_logs and everything(engine, workers) == before
    disk.faults, disk.__class__ = {}, RecordingDisk
    told: list[EngineState] = []
    engine.on_state(lambda state, _reason: told.append(state))
    engine.check_space()
    workers.pump()
    assert told == [EngineState.WRITABLE], "and the reserve is made again"


@pytest.mark.rule("G5")
def test_a_run_that_finds_no_space_loses_nothing_and_the_next_one_works(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    before = everything(engine, workers)
    for where in (("write", ".log"), ("open", ".log"), ("write", ".index"), ("rename", "manifest"), ("read", ".log")):
        disk.faults[where] = OSError(errno.EMFILE, "for now")
        assert isinstance(compact(engine, workers), BookieFailedError)
        disk.faults.clear()
        assert everything(engine, workers) == before
    assert engine.stats.compactions_failed == 5 and engine.compactor.age_s is None
    assert compact(engine, workers) is None
    assert everything(engine, workers) == before and len(log_ids(disk, "/ledgers")) == 3
    assert engine.compactor.age_s == 0.0


def test_a_stop_ends_a_run_and_leaves_nothing_open(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    before = everything(engine, workers)
    answers: Answers = []
    engine.compact(answers.append, major=True)
    while not _moves(engine):
        assert workers.step()
    engine.close(answers.append)
    workers.pump()
    assert isinstance(answers[0], BookieFailedError) and answers[1] is None
    assert not [name for name in disk.left_open if ".log" in name]
    again, workers = open_engine(RecordingDisk(disk.files()))
    assert again.report.clean and everything(again, workers) == before


@pytest.mark.rule("G3", "G5")
def test_copies_that_entries_were_moved_to_stay_though_the_next_page_cannot_be_read(
    disk: RecordingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copies may be the only place of an entry by then. The error was taken for damage of a log that was being
    copied, and the run went on with copies that it had handed over."""
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    before = everything(engine, workers)
    engine.close(lambda error: None)
    workers.pump()
    engine, workers = open_engine(disk, replace(CONFIG, page_cache_pages=1))
    move = LedgerUpdates.move

    def moved(*args: Any) -> int:
        count = move(*args)
        disk.faults["read", ".index"] = OSError(errno.EIO, "the next page cannot be read")
        return count

    monkeypatch.setattr(LedgerUpdates, "move", moved)
    answers: Answers = []
    engine.compact(answers.append, major=True)
    workers.pump()
    disk.faults.clear()
    assert isinstance(answers[0], BookieFailedError) and "the next page cannot be read" in str(answers[0])
    assert not engine.stats.corruptions, "no log is at fault"
    assert everything(engine, workers) == before
    monkeypatch.undo()
    assert compact(engine, workers) is None and everything(engine, workers) == before
