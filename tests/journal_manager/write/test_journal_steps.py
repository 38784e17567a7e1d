"""Steps follow each other; one that fails is the log's end, and one that nobody waits for any more goes on."""

from __future__ import annotations

import asyncio

import pytest

from journal_manager.write.journal_steps import JournalSteps


class Log:
    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.steps = JournalSteps(self.ensure_usable, self.fail)

    def ensure_usable(self) -> None:
        if self.failure is not None:
            raise RuntimeError("failed before") from self.failure

    def fail(self, error: BaseException) -> None:
        self.failure = error


async def test_one_step_runs_at_a_time_in_their_order() -> None:
    log, seen, go_on = Log(), list[str](), asyncio.Event()

    async def first() -> None:
        seen.append("first begins")
        await go_on.wait()
        seen.append("first ends")

    async def second() -> None:
        seen.append("second")

    steps = [log.steps.begin(first), log.steps.begin(second)]
    assert log.steps.tasks == steps
    go_on.set()
    await asyncio.gather(*steps)
    assert seen == ["first begins", "first ends", "second"] and log.steps.tasks == []


async def test_a_step_that_fails_ends_the_log_and_the_steps_behind_it_do_nothing() -> None:
    log, done = Log(), list[str]()

    async def broken() -> None:
        raise OSError("no disk")

    async def behind() -> None:
        done.append("behind")

    steps = log.steps.begin(broken), log.steps.begin(behind)
    with pytest.raises(OSError, match="no disk"):
        await steps[0]
    with pytest.raises(RuntimeError, match="failed before"):
        await steps[1]
    assert isinstance(log.failure, OSError) and done == []


async def test_a_step_goes_on_when_who_asked_for_it_is_cancelled() -> None:
    log, begun, go_on, ended = Log(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def step() -> None:
        begun.set()
        await go_on.wait()
        ended.set()

    asking = asyncio.ensure_future(log.steps.run(step))
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    go_on.set()
    await ended.wait()
    assert log.failure is None
