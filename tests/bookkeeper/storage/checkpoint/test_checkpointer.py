"""What happens besides adds and reads: checkpoints by themselves, space, spare files, the clean stop."""

from __future__ import annotations

import errno
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bookkeeper.errors import BookieFailedError, DiskFullError
from bookkeeper.ids import EntryId
from bookkeeper.storage.base.manifest import Manifest, read_manifest
from bookkeeper.storage.base.results import EngineState
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.index.entry_index import PageCache
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.journal.journal_format import CLEAN_STOP, JournalGroup, read_groups
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, add, everything, lid, make_entry, open_engine, read

WITH_RESERVE = replace(CONFIG, reserve_bytes=8192)
Told = list[tuple[EngineState, str]]


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def nothing(_error: BaseException | None) -> None:
    pass


def fill(engine: Engine, workers: QueueWorkers, begin: int, end: int, size: int = 60) -> None:
    """One group an entry, to ledger 1."""
    for entry_id in range(begin, end):
        add(engine, 1, entry_id, size=size)
        engine.when_durable(nothing)
        workers.pump()


def manifest_of(disk: RecordingDisk) -> Manifest:
    found = read_manifest(disk, "/ledgers")
    assert found is not None
    return found


def on_state(engine: Engine) -> Told:
    told: Told = []
    engine.on_state(lambda state, reason: told.append((state, reason)))
    return told


# -- checkpoints ------------------------------------------------------------------------------------------


def test_a_checkpoint_starts_by_itself_after_so_many_bytes(disk: RecordingDisk) -> None:
    """Bytes of the journal: a group takes whole blocks."""
    engine, workers = open_engine(disk, replace(CONFIG, checkpoint_bytes=10 * 4096 - 1))
    seen = []
    for entry_id in range(31):
        fill(engine, workers, entry_id, entry_id + 1, size=1000)
        seen.append(engine.stats.checkpoints)
    assert seen == [0] * 9 + [1] * 10 + [2] * 10 + [3] * 2, "counted from the beginning of the one before"


@pytest.mark.rule("K14")
def test_one_at_a_time_and_those_asked_for_meanwhile_are_one_more(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    answers: list[int] = []

    def done(number: int, error: BaseException | None) -> None:
        assert error is None
        answers.append(number)

    for number in range(5):
        engine.checkpoint(partial(done, number))
        assert sum(name == "checkpoint" for name, _, _ in workers.jobs) <= 1
    workers.pump()
    assert answers == [0, 1, 2, 3, 4] and engine.stats.checkpoints == 2


@pytest.mark.rule("K16")
def test_a_checkpoint_that_fails_again_and_again_forgets_nothing(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    answers: list[BaseException | None] = []
    disk.faults["rename", "manifest"] = OSError(errno.ENOSPC, "no space left")
    for number in range(4):
        fill(engine, workers, 3 * number, 3 * number + 3)
        engine.fence(lid(100 + number), KEY, nothing)
        engine.checkpoint(answers.append)
        workers.pump()
        engine.check_space()
    assert [type(error) for error in answers] == [DiskFullError] * 4
    disk.faults.clear()
    engine.check_space()
    wanted = everything(engine, workers)
    assert len(wanted[1][0]) == 12 and {100, 101, 102, 103} < set(wanted)
    engine.checkpoint(answers.append)
    workers.pump()
    assert answers[-1] is None
    engine, workers = open_engine(disk)
    assert engine.report.replayed_groups == 0 and everything(engine, workers) == wanted


@pytest.mark.rule("K16", "G1", "B3")
def test_a_ledger_dropped_by_a_checkpoint_that_failed_stays_dropped(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 0, 2)
    engine.checkpoint(nothing)
    workers.pump()
    disk.faults["rename", "manifest"] = OSError(errno.EMFILE, "too many open files")
    answers: list[BaseException | None] = []
    engine.collect([lid(1)], answers.append)
    workers.pump()
    assert len(answers) == 1 and answers[0] is not None
    disk.faults.clear()
    engine.checkpoint(answers.append)
    workers.pump()
    assert answers[1] is None
    for _ in range(2):
        assert list(engine.ledgers()) == [] and engine.is_fenced(lid(1))
        engine, workers = open_engine(disk)


@pytest.mark.rule("K16", "K13")
@pytest.mark.parametrize("place", ["encode", "entries", "full", "write_out", "unsynced"])
def test_a_checkpoint_that_meets_an_error_anywhere_gives_back_what_it_took(
    disk: RecordingDisk, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """What it had taken was taken for good, and it counted as running: no checkpoint followed, ever. The journal grew
    until the disk was full, and the clean stop failed. A ledger whose row could not be made did that."""
    engine, workers = open_engine(disk, replace(CONFIG, entry_log_bytes=1 << 20))
    fill(engine, workers, 0, 2)
    add(engine, 3, 0)
    engine.collect([lid(3)], nothing)
    workers.pump()
    fill(engine, workers, 2, 4)
    engine.fence(lid(2), KEY, nothing)
    owner: Any = {
        "encode": LedgerDescriptor,
        "entries": engine._entry_logs,
        "full": engine._entry_logs,
        "write_out": engine._layout,
        "unsynced": engine._layout,
    }[place]
    answers: list[BaseException | None] = []

    def broken(*_: object) -> None:
        raise OverflowError("it does not fit")

    with monkeypatch.context() as patch:
        patch.setattr(owner if isinstance(owner, type) else type(owner), place, broken)
        for _ in range(2):
            engine.checkpoint(answers.append)
            workers.pump()
    assert [type(error) for error in answers] == [OverflowError] * 2
    (said,) = engine.sentences()
    assert "the last 2 checkpoints of /ledgers failed" in said and "it does not fit" in said
    wanted = everything(engine, workers)
    for _ in range(2):
        engine.check_space()
        workers.pump()
    assert engine.sentences() == () and engine.stats.checkpoints == 2, "it is tried again by itself"
    engine.close(answers.append)
    workers.pump()
    assert answers[-1] is None
    engine, workers = open_engine(disk)
    assert engine.report.clean and engine.report.replayed_groups == 0
    assert everything(engine, workers) == wanted and engine.is_fenced(lid(2)) and engine.is_fenced(lid(3))


@pytest.mark.rule("K16")
def test_a_checkpoint_that_fails_is_tried_again_by_itself_and_less_and_less_often(disk: RecordingDisk) -> None:
    """Nobody knew of it: the callbacks of those that begin by themselves tell nobody, and the next one began only
    when the journal had grown by as much again."""
    engine, workers = open_engine(disk)
    problems: list[str] = []
    engine.scrubber.report_problem = lambda text, error: problems.append(text)
    disk.faults["rename", "manifest"] = OSError(errno.EMFILE, "too many open files")
    fill(engine, workers, 0, 2)
    engine.checkpoint(nothing)
    workers.pump()
    tries = []
    for turn in range(100):
        before = engine.sentences()
        engine.check_space()
        workers.pump()
        if engine.sentences() != before:
            tries.append(turn)
    assert tries == [0, 2, 6, 14, 30, 62, 94]
    assert engine.sentences()[0].startswith("the last 8 checkpoints of /ledgers failed: too many open files")
    assert len(problems) == 1 and "too many open files" in problems[0], "one line for one reason"
    disk.faults.clear()
    for _ in range(32):
        engine.check_space()
        workers.pump()
    assert engine.sentences() == () and engine.stats.checkpoints == 1


@pytest.mark.rule("K23")
def test_an_index_that_could_not_take_a_checkpoint_in_is_not_used_any_more(
    disk: RecordingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are complete, and what is in memory may be half of one and half of the other: a start tells."""
    engine, workers = open_engine(disk)
    fill(engine, workers, 0, 4)
    wanted = everything(engine, workers)
    answers: list[BaseException | None] = []

    def broken(*_: object) -> None:
        raise OverflowError("it does not fit")

    monkeypatch.setattr(type(engine._entry_logs), "mark_finished", broken)
    engine.checkpoint(answers.append)
    workers.pump()
    assert [type(error) for error in answers] == [OverflowError] and engine.state is EngineState.FAILED
    monkeypatch.undo()
    engine, workers = open_engine(disk)
    assert everything(engine, workers) == wanted and engine.report.limbo_reason is None


@pytest.mark.rule("V4")
def test_dead_logs_that_a_failed_checkpoint_did_not_come_to_are_removed_by_the_next(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 0, 12, size=1000)
    disk.faults["rename", "manifest"] = OSError(errno.EMFILE, "too many open files")
    engine.collect([lid(1)], nothing)
    workers.pump()
    disk.faults.clear()
    engine.checkpoint(nothing)
    workers.pump()
    assert engine.stats.removed_logs > 0


@pytest.mark.rule("K13", "K16")
def test_logs_that_a_failed_checkpoint_did_not_come_to_sync_are_synced_by_the_next(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, entry_log_bytes=1 << 20))
    fill(engine, workers, 0, 2)
    disk.faults["write", ".journal"] = OSError(errno.ENOSPC, "no space left")
    answers: list[BaseException | None] = []
    add(engine, 1, 2)
    engine.checkpoint(answers.append)
    workers.pump()
    assert [type(error) for error in answers] == [DiskFullError]
    disk.faults.clear()
    begin = len(disk.ops)
    engine.check_space()
    workers.pump()
    engine.checkpoint(answers.append)
    workers.pump()
    assert answers[1] is None
    steps = [(op.kind, op.target or op.path) for op in disk.ops[begin:]]
    assert steps.index(("sync", "/ledgers/000001.log")) < steps.index(("rename", "/ledgers/manifest"))


@pytest.mark.rule("B5", "K19")
def test_index_damage_is_noted_once_however_often_it_is_met(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 0, 3)
    engine.checkpoint(nothing)
    workers.pump()
    (name,) = (name for name in disk.list("/ledgers") if name.endswith(".index"))
    disk.names[f"/ledgers/{name}"].data[4096] ^= 1
    for _ in range(3):
        assert not isinstance(read(engine, workers, 1, 1), bytes)
    fill(engine, workers, 3, 4)
    engine.checkpoint(nothing)
    workers.pump()
    named = manifest_of(disk)
    assert named.rebuild and len(named.quarantined) == 1 and name in named.quarantined[0]


# -- the stop ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True])
def test_a_stopped_engine_has_no_file_open(disk: RecordingDisk, again: bool) -> None:
    engine, workers = open_engine(disk)
    for number in range(4):
        fill(engine, workers, 12 * number, 12 * number + 12, size=1000)
        engine.checkpoint(lambda error: None)
        workers.pump()
    assert read(engine, workers, 1, 1) == make_entry(1, 1, size=1000)
    engine.close(lambda error: None)
    workers.pump()
    if again:
        engine, workers = open_engine(disk)
        engine.close(lambda error: None)
        workers.pump()
    assert engine.state is EngineState.CLOSED and disk.left_open == []


# -- spare journal files ----------------------------------------------------------------------------------


@pytest.mark.rule("K11")
def test_the_next_journal_file_is_zeroed_before_the_present_one_is_full(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 0, 1, size=3000)
    (spare,) = (name for name in disk.list("/journal") if name.endswith(".spare"))
    begin = len(disk.ops)
    fill(engine, workers, 1, 4, size=3000)
    ops = disk.ops[begin:]
    (rolled,) = (at for at, op in enumerate(ops) if op.kind == "rename" and op.path.endswith(spare))
    assert ops[rolled].target.endswith(".journal")
    assert not any(op.kind == "create" and op.path.startswith("/journal") for op in ops[:rolled])
    assert [name for name in disk.list("/journal") if name.endswith(".spare")] != [], "and then the one after it"


def test_with_a_recycled_file_at_hand_no_new_one_is_made(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, journal_spares=2))
    fill(engine, workers, 0, 10, size=3000)
    engine.checkpoint(nothing)
    workers.pump()
    assert len([name for name in disk.list("/journal") if name.endswith(".spare")]) == 2
    begin = len(disk.ops)
    fill(engine, workers, 10, 13, size=3000)
    steps = [(op.kind, op.path.rpartition(".")[2]) for op in disk.ops[begin:]]
    assert ("rename", "spare") in steps and ("create", "spare") not in steps


@pytest.mark.rule("K26")
def test_a_spare_that_cannot_be_made_for_now_stops_nobody(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    disk.faults["open", ".spare"] = OSError(errno.ENOSPC, "no space left")
    fill(engine, workers, 0, 2)
    assert engine.state is EngineState.WRITABLE
    assert read(engine, workers, 1, 1) == make_entry(1, 1)


# -- the end ----------------------------------------------------------------------------------------------


@pytest.mark.rule("K22")
def test_a_clean_stop_covers_everything_before_it_takes_the_markers_away(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 0, 3)
    add(engine, 1, 3)
    begin = len(disk.ops)
    answers: list[BaseException | None] = []
    engine.close(answers.append)
    with pytest.raises(BookieFailedError):
        add(engine, 1, 4)
    workers.pump()
    assert answers == [None] and engine.state is EngineState.CLOSED
    ops = disk.ops[begin:]
    named = max(at for at, op in enumerate(ops) if op.target == "/ledgers/manifest")
    unmarked = [(at, op.path) for at, op in enumerate(ops) if op.kind == "unlink" and op.path.endswith("/dirty")]
    assert {path for _, path in unmarked} == {"/ledgers/dirty", "/journal/dirty"}
    assert ops[named + 1].kind == "sync_directory" and named + 1 < min(unmarked)[0]
    assert [op.kind for op in ops[-2:]] == ["unlink", "sync_directory"], "and nothing after them"
    assert manifest_of(disk).clean and not disk.locks
    name = max(name for name in disk.list("/journal") if name.endswith(".journal"))
    groups = [
        item
        for item in read_groups(disk.open(f"/journal/{name}"), int(name[:-8], 16))
        if isinstance(item, JournalGroup)
    ]
    assert groups[-1].header.flags == CLEAN_STOP and groups[-1].header.sequence == manifest_of(disk).sequence
    engine.close(answers.append)
    assert answers == [None, None], "a second stop is done already"
    engine, workers = open_engine(disk)
    assert engine.report.clean and engine.report.replayed_groups == 0
    assert len(everything(engine, workers)[1][0]) == 4


@pytest.mark.rule("K22", "K16")
@pytest.mark.parametrize("fault", [("rename", "manifest"), ("write", ".index"), ("unlink", "dirty")])
def test_a_stop_that_does_not_come_to_its_end_is_none(disk: RecordingDisk, fault: tuple[str, str]) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 0, 3)
    disk.faults[fault] = OSError(errno.ENOSPC, "no space left")
    answers: list[BaseException | None] = []
    engine.close(answers.append)
    workers.pump()
    assert len(answers) == 1 and answers[0] is not None
    assert engine.state is EngineState.CLOSED and not disk.locks, "but it has let go"
    disk.faults.clear()
    engine, workers = open_engine(disk)
    assert not engine.report.clean and engine.report.limbo_reason is None
    assert len(everything(engine, workers)[1][0]) == 3


@pytest.mark.rule("K22", "K23")
def test_a_failed_disk_is_let_go_without_a_word_of_a_clean_stop(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    fill(engine, workers, 0, 1)
    disk.faults["sync", ".journal"] = OSError(errno.EIO, "input/output error")
    fill_error: list[BaseException | None] = []
    add(engine, 1, 1)
    engine.when_durable(fill_error.append)
    workers.pump()
    disk.faults.clear()
    answers: list[BaseException | None] = []
    engine.close(answers.append)
    workers.pump()
    assert isinstance(fill_error[0], BookieFailedError) and isinstance(answers[0], BookieFailedError)
    assert disk.exists("/ledgers/dirty") and not disk.locks and not manifest_of(disk).clean


def test_a_checkpoint_under_way_does_not_make_a_stop_less_clean(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    order: list[str] = []
    engine.checkpoint(lambda error: order.append(f"checkpoint {error}"))
    workers.step()
    engine.close(lambda error: order.append(f"stop {error}"))
    workers.pump()
    assert order == ["checkpoint None", "stop None"]
    assert open_engine(disk)[0].report.clean


# -- workers ----------------------------------------------------------------------------------------------


def test_reads_under_way_are_answered_from_segments_that_a_merge_replaces(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    disk.cached = False
    at = 0
    got: list[bytes | BaseException] = []
    while engine.stats.merges == 0:
        assert at < 15
        add(engine, 1, at)
        engine.checkpoint(nothing)
        engine._reader.places.pages = PageCache(1)
        if at:
            engine.read(lid(1), EntryId(0), got.append)
        workers.pump()
        at += 1
    assert got == [make_entry(1, 0)] * (at - 1)


@pytest.mark.rule("G1")
def test_a_log_that_is_full_just_when_a_checkpoint_begins_is_finished_by_the_next(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk, replace(CONFIG, entry_log_bytes=8192))
    fill(engine, workers, 0, 4, size=1000)  # the log is full, and no other is begun
    engine.checkpoint(nothing)
    workers.pump()
    assert not any(log.finished for log in manifest_of(disk).logs.values())
    fill(engine, workers, 4, 5)
    engine.checkpoint(nothing)
    workers.pump()
    assert [log.finished for _, log in sorted(manifest_of(disk).logs.items())] == [True, False]
