"""Blocking steps off the loop, in order."""

from __future__ import annotations

import threading

import pytest

from journal_manager import JournalClosedError, JournalFencedError, JournalUnavailableError
from journal_manager.backends.blocking_steps import BlockingSteps


@pytest.mark.parametrize("threads", [True, False])
async def test_steps_run_one_after_the_other_and_failures_come_out_in_our_words(threads: bool) -> None:
    steps, done = BlockingSteps(threads), list[object]()
    first, second = steps.submit(lambda: done.append(1)), steps.submit(lambda: done.append(2))
    await second
    await first
    assert done == [1, 2]

    def fail(error: Exception) -> None:
        raise error

    with pytest.raises(JournalUnavailableError, match="no disk") as caught:
        await steps.submit(lambda: fail(OSError("no disk")))
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(JournalFencedError):
        await steps.submit(lambda: fail(JournalFencedError("x", epoch=1)))
    with pytest.raises(ZeroDivisionError):
        await steps.submit(lambda: 1 // 0)
    steps.close()
    steps.close()
    with pytest.raises(JournalClosedError):
        await steps.submit(lambda: None)


async def test_what_is_released_waits_for_the_steps_that_use_it() -> None:
    steps, done, gate = BlockingSteps(True), list[str](), threading.Event()

    def use() -> None:
        gate.wait(10)
        done.append("used")

    using = steps.submit(use)
    steps.finish(lambda: done.append("released"))
    gate.set()
    await using
    await steps.submit(lambda: None)
    assert done == ["used", "released"]
    steps.close()
    steps.finish(lambda: done.append("late"))
    assert done[-1] == "late"
