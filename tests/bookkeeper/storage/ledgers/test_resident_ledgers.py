"""Which ledgers leave memory: those that nobody has asked for, and of which nothing is left to write."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace

import pytest

from bookkeeper.ids import EntryId
from bookkeeper.storage.base.results import PackedEntries
from bookkeeper.storage.index.entry_index import PAGE
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.ledgers.resident_ledgers import AT_ONCE, ResidentLedgers
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, add, lid, make_adds, make_entry, open_engine, read


def kept(*ledger_ids: int, limit: int = 4, must_stay: Callable[[int], bool] = lambda _: False) -> ResidentLedgers:
    made = ResidentLedgers()
    made.bound(limit, must_stay)
    for ledger_id in ledger_ids:
        made.keep(LedgerDescriptor(lid(ledger_id)))
    return made


def test_without_a_bound_all_stay() -> None:
    made = ResidentLedgers()
    for ledger_id in range(1000):
        made.keep(LedgerDescriptor(lid(ledger_id)))
    made.make_room(1000)
    assert len(made) == 1000 and sorted(made.all) == list(range(1000))


def test_those_that_were_asked_for_first_leave_first() -> None:
    made = kept(1, 2, 3, 4, 5)
    assert sorted(made.all) == [2, 3, 4, 5] and 1 not in made and made.recall(1) is None and made.peek(1) is None
    made.keep(LedgerDescriptor(lid(6)))
    assert sorted(made.all) == [3, 4, 5, 6]


def test_one_that_is_asked_for_again_and_again_stays() -> None:
    made = kept(1)
    hot = made.recent[1]
    for ledger_id in range(2, 100):
        assert made.recent.get(1, made.recall(1)) is hot and made.recent[1] is hot
        made.keep(LedgerDescriptor(lid(ledger_id)))
        assert len(made) <= 4
    assert 1 in made and made.peek(1) is hot


def test_a_look_does_not_keep_a_ledger() -> None:
    made = kept(1, 2, 3, 4, 5)
    for ledger_id in range(6, 12):
        assert (found := made.peek(ledger_id - 1)) is not None and found.ledger_id == ledger_id - 1
        made.peek(2)
        made.keep(LedgerDescriptor(lid(ledger_id)))
    assert 2 not in made


def test_what_must_stay_stays_and_is_let_go_when_it_may_be() -> None:
    stay = set(range(20))
    made = kept(*range(20), must_stay=stay.__contains__)
    assert len(made) == 20
    stay.clear()
    made.make_room(5)
    assert len(made) == 15, "no more than was allowed at once"
    made.make_room(100)
    assert len(made) == 3, "and there is room for another one"


def test_a_few_leave_for_each_that_comes() -> None:
    stay = set(range(100))
    made = kept(*range(100), must_stay=stay.__contains__)
    stay.clear()
    for count in range(1, 5):
        made.keep(LedgerDescriptor(lid(100 + count)))
        assert len(made) == 100 - (AT_ONCE - 1) * count


def test_there_is_one_descriptor_of_a_ledger_that_somebody_holds() -> None:
    made = kept(1, 2, 3, 4)
    holding = made.peek(1)
    made.keep(LedgerDescriptor(lid(5)))
    assert 1 not in made and list(made.held([1, 2, 9])) != [] and holding in list(made.held([1, 9]))
    assert made.peek(1) is holding and 1 not in made
    older = made.peek(2)
    assert older is not None and 2 not in made.recent and made.recall(2) is older
    assert made.recall(1) is holding and 1 in made
    assert [each.ledger_id for each in made.held([1])] == [1], "once"
    made = kept(1, 2, 3, 4)
    holding = made.peek(1)
    made.keep(LedgerDescriptor(lid(5)))
    made.drop(1, 1)
    assert made.recall(1) is None and not list(made.held([1])) and holding is not None, "it was deleted"
    made.keep(LedgerDescriptor(lid(6)))
    made.drop(0, 5)
    assert sorted(made.all) == [6]


# -- on a disk --------------------------------------------------------------------------------------------


def many(disk: RecordingDisk, count: int, limit: int) -> tuple[QueueWorkers, list[int]]:
    """As many ledgers, each with an entry. How many were in memory when each was asked for."""
    config = replace(CONFIG, resident_ledgers_max=limit)
    engine, workers = open_engine(disk, config)
    for ledger_id in range(count):
        add(engine, ledger_id, 0)
    assert len(engine._ledgers.ledgers.resident) == count, "no checkpoint has written them"
    engine.checkpoint(lambda error: None)
    workers.pump()
    resident = [len(engine._ledgers.ledgers.resident)]
    for ledger_id in range(count):
        assert read(engine, workers, ledger_id, 0) == make_entry(ledger_id, 0)
        resident.append(len(engine._ledgers.ledgers.resident))
    engine.fence(lid(0), KEY, lambda error: None)
    workers.pump()
    assert engine.is_fenced(lid(0)) and not engine.is_fenced(lid(1)) and len(list(engine.ledgers())) == count
    return workers, resident


def test_a_bookie_that_is_asked_for_every_ledger_keeps_few_in_memory() -> None:
    _, resident = many(RecordingDisk(), 500, 30)
    assert max(resident) <= 30


@pytest.mark.rule("B2", "B3", "K16")
def test_what_a_checkpoint_that_fails_had_taken_does_not_leave() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, replace(CONFIG, resident_ledgers_max=1))
    for ledger_id in range(1, 20):
        add(engine, ledger_id, 0)
    engine.checkpoint(lambda error: None)
    workers.pump()
    engine.fence(lid(1), KEY, lambda error: None)
    add(engine, 2, 1)
    workers.pump()
    answers: list[BaseException | None] = []
    engine.checkpoint(answers.append)
    while workers.jobs and workers.jobs[0][0] != "checkpoint":
        workers.step()
    for ledger_id in range(3, 20):
        assert engine.last_entry(lid(ledger_id)) == 0
    add(engine, 2, 2)
    disk.faults["write", ".index"] = OSError(errno.ENOSPC, "no space")
    workers.pump()
    disk.faults.clear()
    assert answers[0] is not None
    for ledger_id in range(3, 20):
        assert engine.last_entry(lid(ledger_id)) == 0
    engine.check_space()
    engine.checkpoint(answers.append)
    workers.pump()
    assert answers[1:] == [None] and len(engine._ledgers.ledgers.resident) <= 1
    for engine_now, workers_now in ((engine, workers), open_engine(RecordingDisk(disk.files()))):
        assert engine_now.is_fenced(lid(1))
        assert [read(engine_now, workers_now, 2, at) for at in range(3)] == [make_entry(2, at) for at in range(3)]


def pump_all_but_reads(workers: QueueWorkers) -> None:
    while others := [job for job in workers.jobs if job[0] != "read"]:
        at = workers.jobs.index(others[0])
        workers.jobs.insert(0, workers.jobs.pop(at))
        workers.step()


@pytest.mark.rule("L1", "V1")
def test_a_read_that_waits_while_its_ledger_leaves_memory_and_segments_are_merged() -> None:
    disk = RecordingDisk()
    engine, workers = open_engine(disk, replace(CONFIG, resident_ledgers_max=1, page_cache_pages=1))
    for entry_ids in (list(range(PAGE)), [5, 7]):  # no single page of a segment has the newest places
        adds = make_adds(1, entry_ids, lac=0)
        engine.append(adds.runs[0], adds)
        engine.checkpoint(lambda error: None)
        workers.pump()
    disk.cached = False
    got: list[PackedEntries | BaseException] = []
    engine.read_batch(lid(1), EntryId(0), 20, 1 << 20, got.append)
    held = engine._ledgers.ledgers.resident[1]
    merges = engine.stats.merges
    for ledger_id in range(2, 12):
        add(engine, ledger_id, 0)
        engine.checkpoint(lambda error: None)
        pump_all_but_reads(workers)
    assert engine.stats.merges > merges and 1 not in engine._ledgers.ledgers.resident, "it has left, its pages moved"
    add(engine, 1, PAGE, lac=0)
    assert engine._ledgers.ledgers.resident[1] is held, "whoever asks finds the one that the read has"
    for ledger_id in range(2, 12):
        assert engine.last_entry(lid(ledger_id)) == 0
    engine.checkpoint(lambda error: None)
    pump_all_but_reads(workers)
    assert not got and len(engine._ledgers.ledgers.resident) <= 1
    workers.pump()
    assert isinstance(got[0], PackedEntries) and got[0].count == 20
    assert read(engine, workers, 1, PAGE) == make_entry(1, PAGE, lac=0)
