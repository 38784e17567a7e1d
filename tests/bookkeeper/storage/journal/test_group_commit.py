"""Group commit: one group with the worker, the next one collecting, and answers only for what is durable."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bookkeeper.errors import BookieFailedError, DiskFullError
from bookkeeper.ids import EntryId
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.journal.deferred_start import SOON_BYTES, SOON_TURNS
from bookkeeper.storage.journal.group_commit import LAZY_SYNC_S
from bookkeeper.storage.journal.journal_format import JournalGroup, padded, read_groups
from tests.bookkeeper.storage.recording_disk import Op, QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, add, everything, lid, make_entry, open_engine, read

Answers = list[tuple[int, BaseException | None]]
LARGE_GROUPS = replace(CONFIG, group_bytes=1 << 20, inflight_bytes=1 << 24, journal_file_bytes=1 << 22)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def add_waiting(engine: Engine, entry_id: int, answers: Answers, size: int = 60) -> bytes:
    """One add whose answer is noted under its entry id."""
    entry = add(engine, 1, entry_id, size=size)
    engine.when_durable(lambda error: answers.append((entry_id, error)))
    return entry


def journal_groups(disk: RecordingDisk) -> list[JournalGroup]:
    """All groups in the journal files that are there, in order."""
    found: list[JournalGroup] = []
    for name in sorted(name for name in disk.files() if name.endswith(".journal")):
        found += [item for item in read_groups(disk.open(name), int(name[9:-8], 16)) if isinstance(item, JournalGroup)]
    return found


def group_writes(disk: RecordingDisk) -> list[Op]:
    return [op for op in disk.ops if op.kind == "write" and op.path.endswith(".journal")]


def test_while_a_group_is_written_everything_else_becomes_the_next_one(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    answers: Answers = []
    for entry_id in range(20):
        add_waiting(engine, entry_id, answers)
    assert len(workers.jobs) == 1, "one group at a time is with the worker"
    workers.pump()
    assert [group.header.records for group in journal_groups(disk)] == [2, 19], "key and entry 0; all the others"
    assert answers == [(entry_id, None) for entry_id in range(20)], "each once, in order"


def test_nothing_is_written_before_someone_wants_it_durable(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    before = len(disk.ops)
    for entry_id in range(50):
        add(engine, 1, entry_id, size=1000)
    workers.pump()
    assert len(disk.ops) == before and engine.journal_bytes_in_flight > 50_000
    answers: Answers = []
    engine.when_durable(lambda error: answers.append((0, error)))
    workers.pump()
    assert answers == [(0, None)] and engine.journal_bytes_in_flight == 0
    assert all(group.header.size <= CONFIG.group_bytes for group in journal_groups(disk)), "cut at the limit"


class Turns:
    """A loop's ``call_later(0, ...)``."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        assert delay == 0
        self.calls.append(callback)

    def end(self) -> None:
        calls, self.calls = self.calls, []
        assert len(calls) <= 1, "one look at a time"
        for call in calls:
            call()


def with_turns(disk: RecordingDisk) -> tuple[Engine, QueueWorkers, Turns]:
    workers, turns = QueueWorkers(), Turns()
    return Engine.open(LARGE_GROUPS, disk, workers, call_later=turns.call_later), workers, turns


def add_deferred(engine: Engine, entry_id: int, size: int = 60) -> bytes:
    entry = add(engine, 1, entry_id, size=size)
    engine.start_writing()
    return entry


@pytest.mark.rule("W11")
def test_what_nobody_waits_for_is_one_group_when_a_turn_brings_no_more(disk: RecordingDisk) -> None:
    engine, workers, turns = with_turns(disk)
    for entry_id in range(12):
        add_deferred(engine, entry_id)
        if entry_id % 2:
            assert workers.jobs == []
            turns.end()
    turns.end()
    assert len(workers.jobs) == 1
    add_deferred(engine, 12)
    workers.pump()
    while turns.calls:
        turns.end()
    workers.pump()
    assert [group.header.records for group in journal_groups(disk)] == [13, 1], "a key and 12; what came meanwhile"
    assert (engine.journal_bytes_in_flight, turns.calls) == (0, [])


class Timers:
    """A loop's ``call_later``, by hand."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        self.calls.append((delay, callback))

    def fire(self) -> None:
        calls, self.calls = self.calls, []
        for _, call in calls:
            call()


def test_an_explicit_lac_rides_with_the_next_add_and_is_answered_behind_it(disk: RecordingDisk) -> None:
    workers, timers = QueueWorkers(), Timers()
    engine = Engine.open(LARGE_GROUPS, disk, workers, call_later=timers.call_later)
    answers: Answers = []
    add_waiting(engine, 0, answers)
    workers.pump()
    before = len(group_writes(disk))
    for lac in (1, 2):
        engine.set_explicit_lac(lid(1), KEY, lac, b"", lambda error, lac=lac: answers.append((-lac, error)))  # type: ignore[misc]
    assert engine.lac(lid(1)) == 2, "visible at once"
    workers.pump()
    assert len(group_writes(disk)) == before and len(timers.calls) == 1 and len(answers) == 1
    add_waiting(engine, 1, answers)
    workers.pump()
    assert len(group_writes(disk)) == before + 1, "one write for all of it"
    assert answers[1:] == [(1, None), (-1, None), (-2, None)]
    timers.fire()
    workers.pump()
    assert len(group_writes(disk)) == before + 1 and timers.calls == []


@pytest.mark.parametrize("full", [False, True])
def test_an_explicit_lac_that_nothing_carries_is_written_after_a_while(disk: RecordingDisk, full: bool) -> None:
    workers, timers = QueueWorkers(), Timers()
    engine = Engine.open(LARGE_GROUPS, disk, workers, call_later=timers.call_later)
    answers: Answers = []
    for round_ in range(2):
        engine.set_explicit_lac(lid(1), KEY, round_, b"", lambda error: answers.append((round_, error)))  # noqa: B023
        if full:  # its group is closed, and waits for its turn
            add(engine, 1, round_, size=LARGE_GROUPS.group_bytes - 1000)
        workers.pump()
        assert len(answers) == round_ and [delay for delay, _ in timers.calls] == [LAZY_SYNC_S]
        timers.fire()
        workers.pump()
        assert len(answers) == round_ + 1 and answers[-1][1] is None
    while timers.calls:
        timers.fire()
        workers.pump()
    assert engine.journal_bytes_in_flight == 0


def test_one_that_comes_while_an_earlier_one_travels_is_written_in_its_time(disk: RecordingDisk) -> None:
    workers, timers = QueueWorkers(), Timers()
    engine = Engine.open(LARGE_GROUPS, disk, workers, call_later=timers.call_later)
    answers: Answers = []
    engine.set_explicit_lac(lid(1), KEY, 0, b"", lambda error: answers.append((0, error)))
    add_waiting(engine, 1, answers)
    workers.pump()
    engine.set_explicit_lac(lid(1), KEY, 1, b"", lambda error: answers.append((2, error)))
    timers.fire()
    assert workers.jobs == [] and len(timers.calls) == 1, "its own time begins"
    timers.fire()
    workers.pump()
    assert answers == [(1, None), (0, None), (2, None)]


@pytest.mark.rule("W11")
def test_what_nobody_waits_for_is_written_soon_however_much_comes(disk: RecordingDisk) -> None:
    engine, workers, turns = with_turns(disk)
    add_deferred(engine, 0)
    entry_id = 1
    while not workers.jobs:
        add_deferred(engine, entry_id)
        entry_id += 1
        turns.end()
    assert entry_id == 1 + SOON_TURNS, "a few in every turn"
    workers.pump()
    while not workers.jobs:
        add_deferred(engine, entry_id, size=SOON_BYTES // 4)
        entry_id += 1
    assert entry_id == 1 + SOON_TURNS + 4, "very many in one"
    workers.pump()
    turns.end()
    assert (engine.journal_bytes_in_flight, len(journal_groups(disk))) == (0, 2)


@pytest.mark.rule("W11", "B1")
def test_whoever_waits_takes_along_what_nobody_waits_for(disk: RecordingDisk) -> None:
    engine, workers, turns = with_turns(disk)
    answers: Answers = []
    add_deferred(engine, 0)
    add_waiting(engine, 1, answers)
    assert len(workers.jobs) == 1, "at once"
    add_deferred(engine, 2)
    add_waiting(engine, 3, answers)
    turns.end()
    workers.step()
    assert answers == [(1, None)] and [name for name, _, _ in workers.jobs].count("journal") == 1
    workers.pump()
    add_deferred(engine, 4)
    engine.force(lid(1), lambda error: answers.append((4, error)))
    add_deferred(engine, 5)
    engine.checkpoint(lambda error: answers.append((5, error)))
    workers.pump()
    assert answers == [(1, None), (3, None), (4, None), (5, None)]
    while turns.calls:
        turns.end()
    assert workers.jobs == []
    assert [group.header.records for group in journal_groups(disk)][:3] == [3, 2, 1]


@pytest.mark.rule("W11", "K23")
def test_what_nobody_waited_for_when_the_disk_failed_is_not_written(disk: RecordingDisk) -> None:
    engine, workers, turns = with_turns(disk)
    answers: Answers = []
    disk.faults["sync", ".journal"] = OSError(errno.EIO, "input/output error")
    add_waiting(engine, 0, answers)
    entry = add_deferred(engine, 1)
    workers.pump()
    turns.end()
    assert isinstance(answers[0][1], BookieFailedError) and workers.jobs == [] and turns.calls == []
    assert not any(entry in op.data for op in disk.ops)


@pytest.mark.rule("K7", "B1")
def test_an_answer_comes_after_the_sync_of_its_group_and_before_that_of_the_next(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    answered: list[int] = []

    def syncs() -> int:
        return sum(op.kind == "sync" and op.path.endswith(".journal") for op in disk.ops)

    before = syncs()
    for entry_id in range(4):
        add(engine, 1, entry_id)
        engine.when_durable(lambda error: answered.append(syncs() - before))
        if entry_id == 2:
            workers.pump()
    workers.pump()
    assert answered == [1, 2, 2, 3], "the second group held two"


@pytest.mark.rule("K9", "K10")
def test_every_header_says_truly_that_all_groups_before_it_are_durable(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, journal_spares=0))
    answers: Answers = []
    for entry_id in range(30):
        add_waiting(engine, entry_id, answers, size=1500)
        if entry_id % 3 == 0:
            workers.step()
    workers.pump()
    groups = journal_groups(disk)
    first = groups[0].header.sequence
    assert [group.header.sequence for group in groups] == list(range(first, first + len(groups)))
    assert all(group.header.durable_below == group.header.sequence - 1 for group in groups)
    assert len({group.header.file_id for group in groups}) >= 3, "over several files"
    assert all(group.header.offset + group.header.padded <= CONFIG.journal_file_bytes for group in groups)


def test_an_entry_larger_than_a_group_and_a_journal_file_is_taken_and_replayed(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    answers: Answers = []
    wanted = [add_waiting(engine, 0, answers), add_waiting(engine, 1, answers, size=50_000)]
    wanted.append(add_waiting(engine, 2, answers))
    assert [read(engine, workers, 1, entry_id) for entry_id in range(3)] == wanted
    workers.pump()
    assert answers == [(0, None), (1, None), (2, None)]
    engine, workers = open_engine(disk)
    assert engine.report.limbo_reason is None and engine.report.replayed_records == 4
    assert [read(engine, workers, 1, entry_id) for entry_id in range(3)] == wanted


@pytest.mark.rule("P12", "W12")
def test_callers_are_paused_once_above_the_limit_and_resumed_once_below_half_of_it(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, inflight_bytes=16384))
    told: list[tuple[str, int]] = []
    engine.on_pressure(
        lambda: told.append(("pause", engine.journal_bytes_in_flight)),
        lambda: told.append(("resume", engine.journal_bytes_in_flight)),
    )
    for entry_id in range(12):
        add(engine, 1, entry_id, size=3000)
    engine.when_durable(lambda error: None)
    workers.pump()
    (pause, above), (resume, below) = told
    assert (pause, resume) == ("pause", "resume")
    assert 16384 < above <= 16384 + 3100 and below <= 8192


@pytest.mark.rule("K26", "K28", "K9")
@pytest.mark.parametrize(
    ("code", "told"), [(errno.ENOSPC, DiskFullError), (errno.EDQUOT, DiskFullError), (errno.EMFILE, BookieFailedError)]
)
@pytest.mark.parametrize("where", ["journal", "log"])
def test_a_group_that_finds_no_room_is_tried_again_at_the_same_place(
    disk: RecordingDisk, code: int, told: type[BaseException], where: str
) -> None:
    """What is in the journal already is durable, and written there once."""
    engine, workers = open_engine(disk)
    answers: Answers = []
    disk.faults["write", f".{where}"] = OSError(code, "for now")
    if where == "journal":  # its file is made before it is used
        disk.faults["write", "0001.journal"] = disk.faults.pop(("write", ".journal"))
    add_waiting(engine, 0, answers)
    add_waiting(engine, 1, answers)
    workers.pump()
    first = told if where == "journal" else type(None)
    assert [(entry_id, type(error)) for entry_id, error in answers] == [(0, first), (1, told)], "in order, each once"
    assert read(engine, workers, 1, 1) == make_entry(1, 1), "what was taken is not thrown away"
    disk.faults.clear()
    engine.check_space()
    workers.pump()
    tries = [op for op in group_writes(disk) if make_entry(1, 0) in op.data]
    assert [op.offset for op in tries] == [4096]
    engine.when_durable(lambda error: answers.append((9, error)))
    assert answers[2:] == [(9, None)]
    engine, workers = open_engine(disk)
    assert engine.report.limbo_reason is None
    assert [read(engine, workers, 1, entry_id) for entry_id in (0, 1)] == [make_entry(1, 0), make_entry(1, 1)]


@pytest.mark.rule("K23")
@pytest.mark.parametrize("fault", [("sync", ".journal"), ("write", ".journal"), ("write", ".log")])
def test_after_a_final_error_everyone_is_told_in_order_and_nothing_is_written(
    disk: RecordingDisk, fault: tuple[str, str]
) -> None:
    engine, workers = open_engine(disk)
    answers: Answers = []
    add_waiting(engine, 0, answers)
    workers.pump()
    disk.faults[fault] = OSError(errno.EIO, "input/output error")
    for entry_id in (1, 2, 3):
        add_waiting(engine, entry_id, answers)
    workers.pump()
    assert [entry_id for entry_id, _ in answers] == [0, 1, 2, 3]
    durable = 2 if fault[1] == ".log" else 1
    assert [error for _, error in answers[:durable]] == [None] * durable
    assert all(isinstance(error, BookieFailedError) for _, error in answers[durable:])
    assert engine.state is EngineState.FAILED
    disk.faults.clear()
    done = len(disk.ops)
    engine.when_durable(lambda error: answers.append((4, error)))
    engine.force(lid(1), lambda error: answers.append((5, error)))
    engine.check_space()
    workers.pump()
    assert [(entry_id, type(error)) for entry_id, error in answers[4:]] == [
        (4, BookieFailedError),
        (5, BookieFailedError),
    ]
    assert len(disk.ops) == done, "a disk that came back has lost what it did not sync"


@pytest.mark.rule("K23")
def test_a_group_in_hand_when_the_disk_fails_elsewhere_is_the_last_one_and_not_acknowledged(
    disk: RecordingDisk,
) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, log_sync_bytes=4096, entry_log_bytes=1 << 20))
    answers: Answers = []
    add_waiting(engine, 0, answers, size=5000)
    add_waiting(engine, 1, answers)
    workers.step()
    add_waiting(engine, 2, answers)
    assert (workers.jobs[0][0], workers.jobs[-1][0]) == ("checkpoint", "journal"), "both under way"
    disk.faults["sync", ".log"] = OSError(errno.EIO, "input/output error")
    workers.pump()
    assert [(entry_id, type(error)) for entry_id, error in answers] == [
        (0, type(None)),
        (1, BookieFailedError),
        (2, BookieFailedError),
    ]
    assert not any(make_entry(1, 2) in op.data for op in disk.ops)


@pytest.mark.rule("B2", "R3")
def test_a_fence_answers_behind_the_adds_before_it_however_many_groups_those_are(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    answers: Answers = []
    for entry_id in range(12):
        add_waiting(engine, entry_id, answers, size=3000)
    engine.fence(lid(1), KEY, lambda error: answers.append((-1, error)))
    while not answers or answers[-1][0] != -1:
        assert workers.step()
    assert answers == [*((entry_id, None) for entry_id in range(12)), (-1, None)]
    engine, workers = open_engine(RecordingDisk(disk.files()))
    assert engine.is_fenced(lid(1)) and len(everything(engine, workers)[1][0]) == 12


def test_what_is_asked_for_inside_an_answer_belongs_to_a_later_group(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    answers: Answers = []

    def again(entry_id: int, error: BaseException | None) -> None:
        answers.append((entry_id, error))
        if entry_id < 5:
            add(engine, 1, entry_id + 1)
            engine.when_durable(partial(again, entry_id + 1))

    add(engine, 1, 0)
    engine.when_durable(partial(again, 0))
    workers.pump()
    assert answers == [(entry_id, None) for entry_id in range(6)]
    assert engine.stats.groups == 6


def test_the_counters_say_what_was_written(disk: RecordingDisk) -> None:
    now = [0.0]

    class Slow(RecordingDisk):
        def before(self, call: str, path: str) -> None:
            now[0] += 0.25 if call == "sync" and path.endswith(".journal") else 0.0

    workers = QueueWorkers()
    engine = Engine.open(CONFIG, Slow(), workers, monotonic=lambda: now[0])
    for entry_id in range(3):
        add(engine, 1, entry_id)
        engine.when_durable(lambda error: None)
        workers.pump()
    stats = engine.stats
    assert (stats.groups, stats.records) == (3, 4), "three entries and a key"
    assert stats.journal_bytes == 3 * padded(100) > stats.record_bytes > 3 * len(make_entry(1, 0))
    assert (stats.sync_seconds, stats.slowest_sync_seconds) == (0.75, 0.25)


@pytest.mark.rule("K5")
def test_a_new_entry_log_is_read_by_the_descriptor_that_writes_it(disk: RecordingDisk) -> None:
    """Also by whoever reads when the log's first group is answered."""
    engine, workers = open_engine(disk)
    opened: list[str] = []
    before = disk.before

    def noting(call: str, path: str) -> None:
        if call == "open" and path.endswith(".log"):
            opened.append(path)
        before(call, path)

    disk.before = noting  # type: ignore[method-assign]
    got: list[object] = []
    entry = add(engine, 1, 0)
    engine.when_durable(lambda error: engine.read(lid(1), EntryId(0), got.append))
    workers.pump()
    assert got == [entry] and len(opened) == 1


@pytest.mark.rule("P12", "K28")
def test_nobody_is_kept_waiting_for_what_is_stuck(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    told: list[str] = []
    engine.on_pressure(lambda: told.append("wait"), lambda: told.append("go on"))
    disk.faults["open", ".log"] = OSError(errno.EMFILE, "for now")
    for entry_id in range(12):
        add(engine, 1, entry_id, size=7000)
    engine.when_durable(lambda error: None)
    assert told == ["wait"]
    workers.pump()
    assert told == ["wait", "go on"]
    with pytest.raises(DiskFullError):  # but no more is taken
        add(engine, 1, 12, size=7000)
    disk.faults.clear()
    engine.check_space()
    workers.pump()
    assert engine.journal_bytes_in_flight == 0 and told == ["wait", "go on"]


@pytest.mark.parametrize("given", ["monotonic", "call_later", "neither"])
def test_without_a_clock_or_a_timer_no_group_waits_for_company(given: str) -> None:
    named: dict[str, Any] = {"monotonic": lambda: 0.0, "call_later": lambda delay, work: work()}
    workers = QueueWorkers()
    config = replace(CONFIG, journal_gap_ms=5)
    engine = Engine.open(config, RecordingDisk(), workers, **{name: named[name] for name in named if name == given})
    answers: list[BaseException | None] = []
    add(engine, 1, 0)
    engine.when_durable(answers.append)
    workers.pump()
    assert answers == [None]


def test_buffers_are_used_again_and_what_large_entries_took_is_not_kept() -> None:
    engine, workers = open_engine(RecordingDisk(), LARGE_GROUPS)
    for entry_id in range(12):
        add(engine, 1, entry_id, size=2 * LARGE_GROUPS.group_bytes if entry_id % 2 else 60)
        engine.when_durable(lambda error: None)
        workers.pump()
    kept = engine._commit._free
    assert 1 <= len(kept) <= 4 and all(buffer.capacity == LARGE_GROUPS.group_bytes for buffer in kept)
