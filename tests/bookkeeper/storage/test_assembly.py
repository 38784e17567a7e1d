"""What group commit reports reaches those whom it concerns."""

from __future__ import annotations

import errno
from functools import partial

import pytest

from bookkeeper.errors import (
    BookieFailedError,
    DiskFullError,
)
from bookkeeper.storage.base.results import EngineState
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import (
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


@pytest.mark.rule("P12")
def test_pressure_is_told_and_taken_back(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    told: list[str] = []
    engine.on_pressure(partial(told.append, "pause"), partial(told.append, "resume"))
    for entry_id in range(100):
        add(engine, 1, entry_id, size=1000)
        engine.when_durable(lambda error: None)
    assert told == ["pause"]
    workers.pump()
    assert told == ["pause", "resume"]


@pytest.mark.rule("K23")
@pytest.mark.parametrize("fault", [("sync", ".journal"), ("write", ".journal"), ("write", ".log")])
def test_a_failed_sync_is_final(disk: RecordingDisk, fault: tuple[str, str]) -> None:
    engine, workers = open_engine(disk)
    states: list[EngineState] = []
    engine.on_state(lambda state, reason: states.append(state))
    answers: Answers = []
    add(engine, 1, 0)
    engine.when_durable(answers.append)
    disk.faults[fault] = OSError(errno.EIO, "input/output error")
    workers.pump()
    disk.faults.clear()
    engine.when_durable(answers.append)
    first = type(None) if fault[1] == ".log" else BookieFailedError
    assert [type(answer) for answer in answers] == [first, BookieFailedError]
    assert states == [EngineState.FAILED]
    with pytest.raises(BookieFailedError):
        add(engine, 1, 1)
    with pytest.raises(BookieFailedError):
        engine.fence(lid(1), KEY, answers.append)
    assert read(engine, workers, 1, 0) == make_entry(1, 0), "reads go on"


@pytest.mark.rule("K26", "K28", "B1")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_what_found_no_space_is_written_when_there_is_some(disk: RecordingDisk, number: int) -> None:
    engine, workers = open_engine(disk)
    disk.faults["open", ".log"] = OSError(number, "cannot")
    answers: Answers = []
    add(engine, 1, 0)
    engine.when_durable(answers.append)
    workers.pump()
    assert answers == [None], "it is durable, though not in the entry log"
    engine.append_entry(lid(1), KEY, make_entry(1, 1), recovery=True)
    engine.when_durable(answers.append)
    workers.pump()
    kind = DiskFullError if number == errno.ENOSPC else BookieFailedError
    assert [type(answer) for answer in answers[1:]] == [kind]
    assert read(engine, workers, 1, 0) == make_entry(1, 0)
    disk.faults.clear()
    engine.check_space()
    workers.pump()
    engine.check_space()
    assert engine.state is EngineState.WRITABLE
    engine.when_durable(answers.append)
    workers.pump()
    assert answers[2:] == [None]
    engine, workers = open_engine(disk)
    assert read_batch(engine, workers, 1, 0) == [make_entry(1, 0), make_entry(1, 1)]
