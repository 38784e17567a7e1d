"""A fence is visible at once, durable later, and for ever; what it refuses."""

from __future__ import annotations

import pytest

from bookkeeper.errors import LedgerFencedError, UnauthorizedError
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import KEY, add, lid, make_entry, open_engine

Answers = list[BaseException | None]


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


@pytest.mark.rule("B2", "B3", "K31")
def test_a_fence_is_visible_at_once_durable_later_and_for_ever(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    add(engine, 1, 0)
    answers: Answers = []
    engine.fence(lid(1), KEY, answers.append)
    engine.fence(lid(2), KEY, answers.append)
    assert answers == []
    with pytest.raises(LedgerFencedError):
        add(engine, 1, 1)
    with pytest.raises(LedgerFencedError):
        add(engine, 2, 0)
    workers.pump()
    assert answers == [None, None]
    for _ in range(2):
        engine, workers = open_engine(disk)
        assert engine.is_fenced(lid(1)) and engine.is_fenced(lid(2)) and not engine.is_fenced(lid(3))
        with pytest.raises(UnauthorizedError):
            engine.fence(lid(2), b"x" * 20, answers.append)
        engine.append_entry(lid(1), KEY, make_entry(1, 1), recovery=True)
        engine.when_durable(answers.append)
        workers.pump()


@pytest.mark.rule("B2", "R3")
def test_a_second_fence_waits_for_the_adds_before_it(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    engine.fence(lid(1), KEY, lambda error: None)
    workers.pump()
    engine.append_entry(lid(1), KEY, make_entry(1, 0), recovery=True)
    answers: Answers = []
    engine.fence(lid(1), KEY, answers.append)
    assert answers == []
    workers.pump()
    assert answers == [None]
