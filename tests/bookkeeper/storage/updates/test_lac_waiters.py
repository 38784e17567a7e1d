"""Who waits for a last add confirmed is called once."""

from __future__ import annotations

import pytest

from bookkeeper.storage.updates.lac_waiters import LacWaiters
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import (
    KEY,
    add,
    lid,
    open_engine,
)

Answers = list[BaseException | None]


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def test_lac_waiters_are_called_once_when_it_rises(disk: RecordingDisk) -> None:
    engine, _ = open_engine(disk)
    woken: list[int] = []
    engine.on_lac(lid(1), woken.append)
    forget = engine.on_lac(lid(1), woken.append)
    forget()
    forget()
    add(engine, 1, 0, lac=-1)
    assert woken == []
    add(engine, 1, 1, lac=0)
    add(engine, 1, 2, lac=1)
    assert woken == [0]
    engine.on_lac(lid(1), woken.append)
    engine.set_explicit_lac(lid(1), KEY, 2, b"", lambda error: None)
    assert woken == [0, 2]


def test_a_waiter_that_is_taken_back_is_not_called_and_leaves_nothing_behind() -> None:
    waiters, told = LacWaiters(), list[int]()
    forget = waiters.add(1, told.append)
    waiters.add(1, told.append)
    assert waiters.by_ledger
    forget()
    forget()
    waiters.wake(1, 5)
    waiters.wake(1, 6)
    assert told == [5] and not waiters.by_ledger


def test_a_waiter_that_is_taken_back_late_takes_no_later_one_with_it() -> None:
    waiters, told = LacWaiters(), list[int]()
    forget = waiters.add(1, told.append)
    waiters.wake(1, 5)
    waiters.add(1, told.append)
    forget()
    waiters.wake(2, 9)
    waiters.wake(1, 6)
    assert told == [5, 6]


def test_who_waits_again_inside_the_call_waits_for_the_next_rise() -> None:
    waiters, told = LacWaiters(), list[int]()

    def again(lac: int) -> None:
        told.append(lac)
        waiters.add(1, again)

    waiters.add(1, again)
    waiters.wake(1, 5)
    waiters.wake(1, 6)
    assert told == [5, 6]
