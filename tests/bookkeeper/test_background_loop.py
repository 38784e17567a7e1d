"""The loop in the background: work runs there, its errors come here, and it never waits for itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from bookkeeper.background_loop import BlockingCloser, each, run, submit
from bookkeeper.errors import IllegalOperationError


def test_work_runs_on_one_other_thread() -> None:
    async def where() -> str:
        return threading.current_thread().name

    assert run(where()) == run(where()) != threading.current_thread().name
    assert submit(where()).result(30) == run(where())


def test_errors_and_time_limits_come_back() -> None:
    ended: list[str] = []

    async def fail() -> None:
        raise ValueError("as it is")

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    with pytest.raises(ValueError, match="as it is"):
        run(fail())
    with pytest.raises(TimeoutError):
        run(wait(), 0.01)
    run(asyncio.sleep(0))
    assert ended == ["cancelled"]


def test_items_come_one_by_one_and_the_iterator_is_closed() -> None:
    closed: list[bool] = []

    async def count() -> AsyncIterator[int]:
        try:
            for number in range(1, 5):
                yield number
        finally:
            closed.append(True)

    assert list(each(count)) == [1, 2, 3, 4]
    some = each(count)
    assert next(some) == 1
    some.close()  # type: ignore[attr-defined]
    assert closed == [True, True]


def test_the_loop_does_not_wait_for_itself() -> None:
    async def outer() -> None:
        run(asyncio.sleep(0))

    with pytest.raises(IllegalOperationError, match="async interface"):
        run(outer())


def test_a_with_closes_whatever_happens_in_it() -> None:
    class Thing(BlockingCloser):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    with Thing() as thing:
        assert thing.closed == 0
    assert thing.closed == 1
    with pytest.raises(ValueError, match="on the way"), thing:
        raise ValueError("on the way")
    assert thing.closed == 2
