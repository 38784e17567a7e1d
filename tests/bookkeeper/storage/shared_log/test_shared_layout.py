"""What group commit, checkpoints and the engine may ask of a layout, of either."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from bookkeeper.ids import EntryId
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine, EngineState
from bookkeeper.storage.journal.entry_log_layout import EntryLogLayout
from bookkeeper.storage.journal.group_sequence import UNLOGGED_MAX
from bookkeeper.storage.journal.pending_group import PendingGroup
from bookkeeper.storage.ledger_logs.ledger_log_layout import LedgerGroup
from bookkeeper.storage.shared_log.shared_layout import SharedLayout
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, PER_LEDGER, add, everything, lid, open_engine, read

SPLIT = replace(CONFIG, split_bytes=0, entry_log_bytes=1 << 20, journal_file_bytes=1 << 20, inflight_bytes=1 << 20)


def step(workers: QueueWorkers, name: str) -> bool:
    """Run the next job of this worker alone; False if it has none."""
    names = [who for who, _, _ in workers.jobs]
    if name not in names:
        return False
    workers.jobs.insert(0, workers.jobs.pop(names.index(name)))
    return workers.step()


def waiting(engine: Engine, entry_id: int, answers: list[object]) -> bytes:
    entry = add(engine, 1, entry_id)
    engine.when_durable(lambda error: answers.append(error or entry_id))
    return entry


def log_writes(disk: RecordingDisk) -> int:
    return sum(op.kind == "write" and op.path.endswith(".log") and op.offset >= 4096 for op in disk.ops)


@pytest.mark.rule("B1", "K7")
def test_a_large_group_is_answered_and_read_before_it_is_in_the_entry_log() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, SPLIT)
    answers: list[object] = []
    entry = waiting(engine, 0, answers)
    assert step(workers, "journal") and answers == [0]
    assert log_writes(disk) == 0 and read_now(engine, 0) == entry
    while step(workers, "log"):
        pass
    assert log_writes(disk) == 1 and engine.journal_bytes_in_flight == 0
    assert read(engine, workers, 1, 0) == entry


def read_now(engine: Engine, entry_id: int) -> object:
    """The entry, if it is at hand."""
    got: list[object] = []
    engine.read(lid(1), EntryId(entry_id), got.append)
    return got[0] if got else None


@pytest.mark.rule("P12")
def test_the_journal_goes_on_but_not_for_ever() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, SPLIT)
    answers: list[object] = []
    for entry_id in range(UNLOGGED_MAX + 2):
        waiting(engine, entry_id, answers)
        step(workers, "journal")
    assert answers == list(range(UNLOGGED_MAX)), "that many are durable and not in the entry log"
    assert not step(workers, "journal"), "the journal waits for the log"
    assert step(workers, "log") and step(workers, "journal")
    assert answers == list(range(UNLOGGED_MAX + 2)), "the others were one group"
    workers.pump()
    assert log_writes(disk) == UNLOGGED_MAX + 1
    assert engine.journal_bytes_in_flight == 0


@pytest.mark.rule("K13")
def test_a_checkpoint_waits_for_the_entry_log() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, SPLIT)
    answers: list[object] = []
    waiting(engine, 0, answers)
    engine.checkpoint(answers.append)
    step(workers, "journal")
    assert answers == [0] and not step(workers, "checkpoint")
    step(workers, "log")
    workers.pump()
    assert answers == [0, None]


@pytest.mark.rule("K26")
def test_what_finds_no_space_in_the_entry_log_stays_readable_and_is_tried_again() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, SPLIT)
    answers: list[object] = []
    first = waiting(engine, 0, answers)
    step(workers, "journal")
    disk.faults["write", ".log"] = OSError(errno.ENOSPC, "full")
    step(workers, "log")
    assert answers == [0] and engine.state is EngineState.READ_ONLY
    assert read_now(engine, 0) == first
    disk.faults.clear()
    for _look in range(2):
        engine.check_space()
        workers.pump()
    second = waiting(engine, 1, answers)
    workers.pump()
    assert answers == [0, 1] and engine.journal_bytes_in_flight == 0
    again, workers = open_engine(RecordingDisk(disk.files()), SPLIT)
    assert [read(again, workers, 1, entry_id) for entry_id in (0, 1)] == [first, second]
    assert everything(again, workers) == everything(engine, workers)


@pytest.mark.rule("K23")
def test_an_entry_log_that_fails_is_final() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, SPLIT)
    answers: list[object] = []
    waiting(engine, 0, answers)
    step(workers, "journal")
    waiting(engine, 1, answers)
    disk.faults["write", ".log"] = OSError(errno.EIO, "broken")
    step(workers, "log")
    assert engine.state is EngineState.FAILED
    assert answers[0] == 0 and isinstance(answers[1], BaseException), "what was durable stays answered"


LAYOUTS = pytest.mark.parametrize("config", [CONFIG, PER_LEDGER], ids=["shared", "own"])


@LAYOUTS
def test_a_layout_knows_the_descriptors_of_a_checkpoint(config: StorageConfig) -> None:
    engine, workers = open_engine(RecordingDisk(), config)
    layout: EntryLogLayout = engine._layout
    add(engine, 1, 0)
    engine.when_durable(lambda error: None)
    workers.pump()
    told: list[BaseException | None] = []
    layout.write_out(told.append)
    workers.pump()
    assert told == [None] and layout.has_writer(1)
    end = engine._entry_logs.logs[1].end
    assert layout.unsynced({1: end}) == {1: layout.writer_of(1)} and layout.writer_of(1) is not None
    layout.synced({1: end})
    assert not layout.end_idle_logs() and list(layout.open_files()) == []


@LAYOUTS
def test_advice_and_a_look_are_welcome_everywhere(config: StorageConfig) -> None:
    engine, workers = open_engine(RecordingDisk(), config)
    add(engine, 1, 0)
    engine.ledger_closed(lid(1))
    engine.ledger_closed(lid(2))
    engine.finish_logs()
    add(engine, 1, 1)
    told: list[BaseException | None] = []
    engine.checkpoint(told.append)
    workers.pump()
    assert told == [None] and engine.last_entry(lid(1)) == 1


def test_in_the_shared_layout_nothing_is_added_to_the_way_of_a_run() -> None:
    engine, _ = open_engine(RecordingDisk(), CONFIG)
    layout = engine._layout
    assert isinstance(layout, SharedLayout) and layout.new_group is PendingGroup
    assert layout.next_place == engine._entry_logs.next_place and layout.copies_with_journal and layout.syncs_names
    assert layout.dead_logs(lambda ledger_id: True) == []
    add(engine, 1, 0)
    assert type(engine._commit.groups.collecting) is PendingGroup
    assert engine._reader.unwritten is engine._commit.groups
    assert engine._reader.source_of == engine._entry_logs.file


def test_with_a_log_per_ledger_a_group_has_no_place_of_its_own() -> None:
    engine, _ = open_engine(RecordingDisk(), replace(PER_LEDGER))
    layout = engine._layout
    assert layout.next_place() == (0, 0) and not layout.copies_with_journal and not layout.syncs_names
    add(engine, 1, 0)
    assert isinstance(engine._commit.groups.collecting, LedgerGroup)
