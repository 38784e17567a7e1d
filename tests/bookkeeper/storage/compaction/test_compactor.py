"""Compaction as the engine sees it: runs that are due or asked for, suspended and resumed, and the report."""

from __future__ import annotations

from dataclasses import replace

from bookkeeper.storage.compaction.schedule import LogUse
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.entry_log.entry_log_file import log_ids
from tests.bookkeeper.storage.compaction.test_compaction_steps import Answers, compact, disk, drop, filled
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG

__all__ = ["disk"]


def test_nothing_is_copied_where_nothing_can_be_won(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    before = disk.files()
    assert compact(engine, workers) is None
    assert {name for name in disk.files() if ".log" in name} == {name for name in before if ".log" in name}
    assert engine.stats.compactions == 1 and not engine.stats.compacted_logs


def test_a_minor_compaction_takes_logs_of_which_little_lives(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 2)
    logs = log_ids(disk, "/ledgers")
    assert compact(engine, workers, major=False) is None
    assert not engine.stats.compacted_logs and log_ids(disk, "/ledgers") == logs
    drop(engine, workers, 1)
    assert compact(engine, workers, major=False) is None
    assert engine.stats.compacted_logs


def test_a_suspended_run_goes_on_where_it_was(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    answers: Answers = []
    engine.compactor.suspend()
    engine.compact(answers.append, major=True)
    workers.pump()
    assert not answers
    engine.compactor.resume()
    workers.pump()
    assert answers == [None] and engine.stats.compacted_logs


def test_the_report_says_what_lives_in_every_log(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    got: list[list[LogUse] | BaseException] = []
    engine.compactor.report(got.append)
    workers.pump()
    uses = got[0]
    assert isinstance(uses, list) and [use.log_id for use in uses] == log_ids(disk, "/ledgers")
    assert uses[-1].filling and not any(use.filling for use in uses[:-1])
    assert all(0 < use.live < use.total < 8192 for use in uses[:-1])


def test_runs_that_are_asked_for_meanwhile_come_after_it(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    answers: list[str] = []
    engine.compact(lambda error: answers.append("first"), major=True)
    engine.compact(lambda error: answers.append("second"))
    workers.pump()
    assert answers == ["first", "second"] and engine.stats.compactions == 2


def test_a_run_begins_when_it_is_due(disk: RecordingDisk) -> None:
    filled(disk)
    disk.locks.clear()
    workers, now = QueueWorkers(), [0.0]
    engine = Engine.open(replace(CONFIG, major_compaction_interval_s=50.0), disk, workers, monotonic=lambda: now[0])
    drop(engine, workers, 1)
    answers: Answers = []
    engine.compactor.run_if_due(answers.append)
    workers.pump()
    assert not answers and engine.compactor.age_s is None
    now[0] = 50.0
    engine.compactor.run_if_due(answers.append)
    engine.compactor.run_if_due(answers.append)
    workers.pump()
    assert answers == [None] and engine.stats.compacted_logs
    now[0] = 53.0
    assert engine.compactor.age_s == 3.0


def test_the_rows_say_what_a_run_would_win_and_why_a_log_is_left(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    engine.compactor.schedule.leave(2, "it is damaged")
    got: list[list[dict[str, object]] | BaseException] = []
    engine.compactor.rows(got.append)
    workers.pump()
    rows = got[0]
    assert isinstance(rows, list)
    one, two, last = rows[0], rows[1], rows[-1]
    assert one == {**one, "log": 1, "minor": True, "major": True, "filling": False, "left": None}
    assert one["wins_bytes"] == int(str(one["bytes"])) - int(str(one["live_bytes"])) > 0
    assert two == {**two, "minor": False, "major": False, "wins_bytes": 0, "left": "it is damaged"}
    assert last["filling"] and not last["wins_bytes"]
    assert engine.compactor.sentences() == ("entry log 2 is not compacted: it is damaged",)
    engine.compactor.suspend()
    assert "compaction is suspended" in engine.compactor.sentences()


def test_major_runs_are_counted_and_what_they_take_was_not_dead_as_a_whole(disk: RecordingDisk) -> None:
    engine, workers = filled(disk)
    drop(engine, workers, 1)
    runs = [compact(engine, workers, major=major) for major in (False, True, False)]
    assert runs == [None] * 3
    assert (engine.stats.compactions, engine.stats.major_compactions) == (3, 1)
    assert engine.stats.compacted_logs and engine.stats.removed_bytes == 0
