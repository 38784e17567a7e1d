"""Groups on the loop's own thread: only while syncs are fast, and with the same promises."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.journal.inline_sync import AWAY, INLINE_BYTES, ROW, SLOW, InlineSync
from bookkeeper.storage.journal.write_schedule import ALONE
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, add, read

LIMIT = 100e-6
INLINE = replace(CONFIG, inline_sync_us=100.0, entry_log_bytes=1 << 20, journal_file_bytes=1 << 20)


def test_off_until_a_row_of_syncs_was_fast() -> None:
    policy = InlineSync(LIMIT)
    for _ in range(ROW - 1):
        policy.note(0.0, LIMIT / 2, 4096)
        assert not policy.on
    policy.note(0.0, LIMIT / 2, 4096)
    assert policy.on


def test_the_first_slow_sync_ends_it_and_a_new_row_is_needed() -> None:
    policy = InlineSync(LIMIT, on=True)
    took = SLOW * LIMIT * 1.01
    policy.note(0.0, took, 4096)
    assert not policy.on
    for _ in range(ROW - 1):
        policy.note(1.0, LIMIT / 10, 4096)
    policy.note(1.0, took, 4096)
    for _ in range(ROW - 1):
        policy.note(1.0, LIMIT / 10, 4096)
        assert not policy.on, "the worker's slow one broke the row"
    policy.note(1.0, LIMIT / 10, 4096)
    assert policy.on


def test_slow_syncs_take_a_small_share_of_the_loops_time() -> None:
    policy, now, held_up, fast, slow = InlineSync(LIMIT), 0.0, 0.0, LIMIT / 2, 100 * LIMIT
    inline = 0
    for number in range(100_000):
        took = slow if number % 50 == 0 else fast
        held_up += took if policy.on and took == slow else 0.0
        inline += policy.on
        policy.note(now, took, 4096)
        now += took + fast
    assert 0 < held_up <= now / AWAY
    assert inline > 1000, "and it comes back all the same"


def test_a_slow_average_ends_it_and_one_outlier_does_not_hide_a_fast_disk() -> None:
    policy = InlineSync(LIMIT, on=True)
    for _ in range(64):
        policy.note(0.0, 3 * LIMIT, 4096)
    assert not policy.on
    policy = InlineSync(LIMIT)
    policy.note(0.0, 1000 * LIMIT, 4096)
    for _ in range(ROW):
        policy.note(0.0, LIMIT / 10, 4096)
    assert policy.on


def test_large_groups_say_nothing_and_no_limit_means_never() -> None:
    policy = InlineSync(LIMIT, on=True)
    policy.note(0.0, 1.0, INLINE_BYTES + 1)
    assert policy.on
    never = InlineSync(0.0)
    for _ in range(2 * ROW):
        never.note(0.0, 0.0, 4096)
    assert not never.on


@dataclass
class Turns:
    """A loop's call_later(0, ...) and a clock that only syncs move."""

    now: float = 0.0
    calls: list[Callable[[], None]] = field(default_factory=list)

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        assert delay == 0
        self.calls.append(callback)

    def end(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


def opened(disk: RecordingDisk) -> tuple[Engine, QueueWorkers, Turns]:
    """An engine whose syncs were all fast so far."""
    workers, turns = QueueWorkers(), Turns()
    engine = Engine.open(INLINE, disk, workers, monotonic=lambda: turns.now, call_later=turns.call_later)
    for entry_id in range(ROW):
        add(engine, 1, entry_id)
        engine.when_durable(lambda error: None)
        workers.pump()
    return engine, workers, turns


@pytest.mark.rule("K7", "B1")
def test_the_answer_comes_after_the_sync_and_not_inside_the_call() -> None:
    disk = RecordingDisk()
    engine, _workers, turns = opened(disk)
    answers: list[BaseException | None] = []
    add(engine, 1, ROW)
    engine.when_durable(answers.append)
    add(engine, 1, ROW + 1)
    engine.when_durable(answers.append)
    before = len(disk.ops)
    assert answers == [] and engine.journal_bytes_in_flight > 0
    turns.end()
    assert answers == [None, None], "no worker was needed"
    synced = [("write", "/journal"), ("sync", "/journal")]
    assert places(disk, before) == synced, "one group; its answers leave before it goes to the entry log"
    turns.end()
    assert places(disk, before) == [*synced, ("write", "/ledgers")]
    assert engine.journal_bytes_in_flight == 0 and not turns.calls


def places(disk: RecordingDisk, before: int) -> list[tuple[str, str]]:
    return [(op.kind, op.path.rpartition("/")[0]) for op in disk.ops[before:]]


@pytest.mark.rule("K7", "K9")
def test_between_answer_and_entry_log_it_can_be_read_and_nothing_overtakes_it() -> None:
    disk = RecordingDisk()
    engine, workers, turns = opened(disk)
    answers: list[BaseException | None] = []
    entry = add(engine, 1, ROW)
    engine.when_durable(answers.append)
    turns.end()
    before = len(disk.ops)
    assert read(engine, workers, 1, ROW) == entry
    engine.when_durable(answers.append)
    assert answers == [None, None], "it is durable: whoever asks is told at once"
    later = add(engine, 1, ROW + 1)
    engine.when_durable(answers.append)
    assert len(answers) == 2 and len(disk.ops) == before
    turns.end()
    assert answers == [None] * 3
    assert places(disk, before) == [("write", "/ledgers"), ("write", "/journal"), ("sync", "/journal")]
    turns.end()
    assert places(disk, before)[3:] == [("write", "/ledgers")] and read(engine, workers, 1, ROW + 1) == later


@pytest.mark.rule("K7")
def test_a_lone_caller_does_not_wait_for_the_end_of_the_turn() -> None:
    disk = RecordingDisk()
    engine, _workers, turns = opened(disk)
    answers: list[BaseException | None] = []
    following = iter(range(ROW, 1000))

    def at_once(callers: int) -> int:
        """So many of them in one turn; how many had their answer before its end."""
        answers.clear()
        for _ in range(callers):
            add(engine, 1, next(following))
            engine.when_durable(answers.append)
        early = len(answers)
        while turns.calls:
            turns.end()
        assert answers == [None] * callers
        return early

    assert [at_once(1) for _ in range(ALONE + 1)] == [0] * ALONE + [1]
    assert [at_once(3) for _ in range(3)] == [1, 0, 0], "they come in company again"
    assert at_once(1) == 0


@pytest.mark.rule("K26")
def test_a_full_entry_log_after_the_answer_loses_nothing_and_is_tried_again() -> None:
    disk = RecordingDisk()
    engine, workers, turns = opened(disk)
    answers: list[BaseException | None] = []
    entry = add(engine, 1, ROW)
    engine.when_durable(answers.append)
    turns.end()
    disk.faults["write", ".log"] = OSError(errno.ENOSPC, "full")
    before = len(disk.ops)
    turns.end()
    workers.pump()
    assert answers == [None] and engine.journal_bytes_in_flight > 0
    assert read(engine, workers, 1, ROW) == entry
    disk.faults.clear()
    for _look in range(2):  # the first tries again, the next finds space
        engine.check_space()
        workers.pump()
    assert engine.journal_bytes_in_flight == 0
    add(engine, 1, ROW + 1)
    engine.when_durable(answers.append)
    while turns.calls or workers.jobs:
        workers.pump()
        turns.end()
    assert answers == [None, None]
    assert [op.kind for op in disk.ops[before:] if op.path.endswith(".log")] == ["write"] * 2, "both groups"
    assert engine.journal_bytes_in_flight == 0


@pytest.mark.rule("K13")
def test_a_checkpoint_asked_for_between_answer_and_entry_log_waits() -> None:
    disk = RecordingDisk()
    engine, workers, turns = opened(disk)
    answers: list[BaseException | None] = []
    add(engine, 1, ROW)
    engine.when_durable(lambda error: engine.checkpoint(answers.append))
    turns.end()
    assert not workers.jobs, "the mark must not pass what is in the journal alone"
    while turns.calls or workers.jobs:
        turns.end()
        workers.pump()
    assert answers == [None]


def test_a_large_group_goes_to_the_worker() -> None:
    disk = RecordingDisk()
    engine, workers, turns = opened(disk)
    answers: list[BaseException | None] = []
    add(engine, 1, ROW, size=INLINE_BYTES + 1)
    engine.when_durable(answers.append)
    turns.end()
    assert answers == []
    workers.pump()
    assert answers == [None]


@pytest.mark.rule("W11")
def test_what_nobody_waits_for_never_holds_up_the_loop() -> None:
    disk = RecordingDisk()
    engine, workers, turns = opened(disk)
    before = len(disk.ops)
    for entry_id in (ROW, ROW + 1):
        add(engine, 1, entry_id)
        engine.start_writing()
        while turns.calls:
            turns.end()
        assert len(disk.ops) == before and len(workers.jobs) == 1
    workers.pump()
    while turns.calls:
        turns.end()
    assert len(workers.jobs) == 1, "nor what was collected meanwhile"
    workers.pump()
    assert engine.journal_bytes_in_flight == 0
    answers: list[BaseException | None] = []
    add(engine, 1, ROW + 2)
    engine.start_writing()
    add(engine, 1, ROW + 3)
    engine.when_durable(answers.append)
    turns.end()
    assert answers == [None], "with a plain add it is written like one"


@pytest.mark.rule("K13")
def test_a_checkpoint_begins_when_the_group_is_in_its_log() -> None:
    disk = RecordingDisk()
    engine, workers, turns = opened(disk)
    answers: list[BaseException | None] = []
    before = len(disk.ops)
    add(engine, 1, ROW)
    engine.when_durable(answers.append)
    engine.checkpoint(answers.append)
    while turns.calls or workers.jobs:
        workers.pump()
        turns.end()
    assert answers == [None, None]
    ops = [op.kind for op in disk.ops[before:] if op.path.endswith((".log", "/manifest.tmp"))]
    assert ops[:2] == ["write", "sync"] and "rename" in ops, "records, then their sync, then the mark"


@pytest.mark.rule("K23")
def test_a_failed_sync_is_final_here_too() -> None:
    disk = RecordingDisk()
    engine, _workers, turns = opened(disk)
    answers: list[BaseException | None] = []
    add(engine, 1, ROW)
    engine.when_durable(answers.append)
    disk.faults["sync", ".journal"] = OSError(errno.EIO, "sync")
    turns.end()
    assert len(answers) == 1 and answers[0] is not None
    assert engine.state is EngineState.FAILED
