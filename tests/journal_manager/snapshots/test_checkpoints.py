"""When a snapshot is due."""

from __future__ import annotations

from typing import Any

import pytest

from journal_manager.snapshots.checkpoints import CheckpointPolicy, CheckpointSchedule


def schedule(**policy: Any) -> CheckpointSchedule:
    return CheckpointSchedule(CheckpointPolicy(**{"edits": 10, "seconds": 60.0, **policy}), now=100.0)


def test_enough_edits_make_one_due_at_once() -> None:
    due = schedule()
    assert not due.is_due(9, 100.0)
    assert due.is_due(10, 100.0)
    due.on_snapshot(10, 100.0)
    assert not due.is_due(19, 100.0)
    assert due.is_due(20, 100.0)


def test_enough_time_makes_one_due_if_there_is_a_new_edit() -> None:
    due = schedule()
    assert not due.is_due(0, 1000.0)
    assert not due.is_due(1, 159.0)
    assert due.is_due(1, 160.0)
    due.on_snapshot(1, 160.0)
    assert not due.is_due(1, 1000.0)
    assert not due.is_due(2, 219.0)
    assert due.is_due(2, 220.0)


def test_the_active_replica_waits_longer() -> None:
    due = schedule(active_factor=2.0)
    assert not due.is_due(19, 219.0, active=True)
    assert due.is_due(20, 100.0, active=True)
    assert due.is_due(1, 220.0, active=True)


def test_an_older_snapshot_changes_nothing() -> None:
    due = schedule()
    due.on_snapshot(8, 150.0)
    due.on_snapshot(5, 200.0)
    assert due.newest == 8
    assert due.is_due(9, 210.0)


def test_after_a_failure_it_waits_before_it_tries_again() -> None:
    due = schedule()
    due.postpone(160.0)
    assert not due.is_due(1, 219.0)
    assert due.is_due(1, 220.0)


def test_settings_that_cannot_work_are_refused() -> None:
    for wrong in ({"edits": 0}, {"seconds": 0.0}, {"check_s": 0.0}, {"active_factor": 0.5}):
        with pytest.raises(ValueError, match="at least 1"):
            CheckpointPolicy(**wrong)
