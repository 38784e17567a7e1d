"""What can be asked of a ledger, and what an honest answer is."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from bookkeeper.errors import (
    BookieFailedError,
    DataUnknownError,
    LedgerFencedError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    add,
    lid,
    make_entry,
    open_engine,
    read,
    read_batch,
)

Answers = list[BaseException | None]


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


@pytest.mark.rule("B5")
def test_honest_negatives(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    assert isinstance(read(engine, workers, 1, 0), NoSuchLedgerError)
    with pytest.raises(NoSuchLedgerError):
        engine.lac(lid(1))
    add(engine, 1, 0)
    assert isinstance(read(engine, workers, 1, 1), NoSuchEntryError)
    with pytest.raises(NoSuchEntryError):
        read_batch(engine, workers, 1, 1)
    engine.fence(lid(2), KEY, lambda error: None)
    assert isinstance(read(engine, workers, 2, -1), NoSuchEntryError)


@pytest.mark.rule("B7", "B13")
@pytest.mark.parametrize("cached", [True, False])
def test_reads_in_every_stage_of_an_entry(disk: RecordingDisk, cached: bool) -> None:
    config = replace(CONFIG, page_cache_pages=1)
    engine, workers = open_engine(disk, config)
    disk.cached = cached
    sizes = [10, 5000, 60, 0, 700, 4096]
    for at in range(60):
        add(engine, 1 + at % 2, at // 2, size=sizes[at % 6])
        if at % 7 == 0:
            engine.when_durable(lambda error: None)
        if at % 17 == 0:
            engine.checkpoint(lambda error: None)
        if at % 5 == 0:
            workers.step()
    wanted = {(1 + at % 2, at // 2): make_entry(1 + at % 2, at // 2, size=sizes[at % 6]) for at in range(60)}
    for key, entry in wanted.items():
        assert read(engine, workers, *key) == entry
    for ledger_id in (1, 2):
        whole = [wanted[ledger_id, entry_id] for entry_id in range(30)]
        got: list[bytes] = []
        while len(got) < 30:
            got += read_batch(engine, workers, ledger_id, len(got), count=7, size=9000)
        assert got == whole


def test_batch_limits(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    entries = [add(engine, 1, entry_id) for entry_id in range(10)]
    for _ in range(2):
        assert read_batch(engine, workers, 1, 0) == entries
        assert read_batch(engine, workers, 1, 3, count=4) == entries[3:7]
        assert read_batch(engine, workers, 1, 3, size=1) == entries[3:4], "one at least"
        assert read_batch(engine, workers, 1, 3, size=2 * (4 + len(entries[0]))) == entries[3:5]
        engine.checkpoint(lambda error: None)
        workers.pump()


def test_which_entries_are_here(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    for entry_id in (0, 1, 2, 5, 6, 9, 20000, 3):
        add(engine, 1, entry_id)
        if entry_id in (2, 9):
            engine.checkpoint(lambda error: None)
            workers.pump()
    runs = [(run.first, run.count) for run in engine.entries(lid(1))]
    assert runs == [(0, 4), (5, 2), (9, 1), (20000, 1)]
    assert engine.last_entry(lid(1)) == 20000
    assert list(engine.ledgers()) == [1]


@pytest.mark.rule("B5", "M6")
def test_that_a_ledger_was_deleted_is_known_whatever_else_is_not(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    engine.collect({lid(1)}, lambda error: None)
    workers.pump()
    engine.doubt({lid(1), lid(9)})
    assert isinstance(read(engine, workers, 9, 0), DataUnknownError)
    assert isinstance(read(engine, workers, 1, 0), NoSuchLedgerError)


def test_who_lists_the_entries_of_every_ledger_has_none_stay_in_memory(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    for ledger_id in (1, 2):
        add(engine, ledger_id, 0)
        add(engine, ledger_id, 1)
    engine.close(lambda error: None)
    workers.pump()
    engine, workers = open_engine(disk)
    assert [[(run.first, run.count) for run in engine.entries(lid(each))] for each in (1, 2)] == [[(0, 2)], [(0, 2)]]
    with pytest.raises(NoSuchLedgerError):
        engine.entries(lid(3))
    assert not engine._ledgers.ledgers.resident
    assert isinstance(read(engine, workers, 1, 0), bytes) and list(engine._ledgers.ledgers.resident) == [1]


@pytest.mark.rule("K27")
def test_an_io_error_is_no_negative(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    engine.checkpoint(lambda error: None)
    workers.pump()
    disk.faults["read", ".log"] = OSError(errno.EIO, "input/output error")
    assert isinstance(read(engine, workers, 1, 0), BookieFailedError)
    disk.faults.clear()
    engine, workers = open_engine(disk)
    disk.faults["read", ".index"] = OSError(errno.EIO, "input/output error")
    assert isinstance(read(engine, workers, 1, 0), BookieFailedError)


@pytest.mark.rule("B9", "B3", "B5")
def test_limbo_is_narrowed_to_the_ledgers_that_a_loss_may_concern(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    engine.when_durable(lambda error: None)
    workers.pump()
    kept = {name: data for name, data in disk.files().items() if not name.endswith(".journal")}
    engine, workers = open_engine(RecordingDisk(kept))
    assert [engine.in_limbo, engine.takes_new_ledgers] == [True, False]
    engine.narrow_limbo([lid(1), lid(2)])
    assert [engine.in_limbo, engine.takes_new_ledgers] == [True, True]
    add(engine, 5, 0)
    assert engine.is_fenced(lid(2)) and not engine.is_fenced(lid(5))
    assert isinstance(read(engine, workers, 2, 0), DataUnknownError)
    assert isinstance(read(engine, workers, 6, 0), NoSuchLedgerError)
    with pytest.raises(LedgerFencedError):
        add(engine, 1, 1)
    engine.end_limbo(lid(2))
    add(engine, 2, 0)
