"""The loop in the background: work runs there, its errors come here, and it never waits for itself."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator

import pytest

from bookkeeper.background_loop import (
    Blocking,
    BlockingCloser,
    SharedAttribute,
    blocking,
    each,
    iterating,
    making,
    opening,
    run,
    submit,
    submitting,
)
from bookkeeper.errors import IllegalOperationError
from bookkeeper.launchers.machine_speed import stretch


def test_work_runs_on_one_other_thread() -> None:
    async def where() -> str:
        return threading.current_thread().name

    assert run(where()) == run(where()) != threading.current_thread().name
    assert submit(where()).result(30) == run(where())


FORKED = """
import os, signal, threading
from bookkeeper.background_loop import *
from bookkeeper.background_loop import _background
from bookkeeper.errors import IllegalOperationError

class Original:
    width = 3
    async def get(self): return 1
    async def count(self):
        for n in range(3): yield n
    async def close(self): pass

class Twin(BlockingCloser[Original]):
    width = SharedAttribute[int]()
    get, close, count, later = blocking(Original.get), blocking(Original.close), iterating(Original.count), \
        submitting(Original.get)

twin = Twin(Original())
numbers = twin.count()
assert (twin.get(), twin.width, next(numbers)) == (1, 3, 0)
_background._lock.acquire()
child = os.fork()
if child == 0:
    signal.alarm(30)
    for use in (twin.get, twin.close, twin.later, lambda: list(twin.count()), lambda: twin.width,
                lambda: list(numbers)):
        try:
            use()
        except IllegalOperationError as error:
            assert "a forked process must connect for itself" in str(error), error
        else:
            os._exit(1)
    os._exit(0 if Twin(Original()).get() == 1 else 2)
_background._lock.release()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (twin.get(), list(numbers)) == (1, [1, 2])
"""


@pytest.mark.rule("P9")
def test_a_forked_process_is_told_that_it_has_copies_and_has_a_loop_of_its_own() -> None:
    """Calls through the copy of a stream, a namespace or an edit log waited for ever, for threads that were not
    there."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", FORKED], env=environment, capture_output=True, text=True, timeout=60 * stretch()
    )
    assert (done.returncode, done.stderr) == (0, "")


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
    class Thing(BlockingCloser[None]):
        closed = 0

        def close(self, /) -> None:
            self.closed += 1

    with Thing(None) as thing:
        assert thing.closed == 0
    assert thing.closed == 1
    with pytest.raises(ValueError, match="on the way"), thing:
        raise ValueError("on the way")
    assert thing.closed == 2


class Count:
    """An asynchronous counter, and where it was called."""

    def __init__(self, value: int = 0) -> None:
        self._value = value
        self.threads: set[str] = set()

    @property
    def value(self) -> int:
        return self._value

    async def add(self, number: int, *, twice: bool = False) -> int:
        """Add a number."""
        self.threads.add(threading.current_thread().name)
        if number < 0:
            raise ValueError("negative")
        self._value += number * (2 if twice else 1)
        return self._value

    async def to(self, end: int) -> AsyncIterator[int]:
        """Count on."""
        while self._value < end:
            yield await self.add(1)

    async def copy(self) -> Count:
        """Another one."""
        return Count(self._value)

    def fresh(self) -> Count:
        """One from zero, which needs a loop."""
        asyncio.get_running_loop()
        return Count()


class DoubleCount(Count):
    async def add(self, number: int, *, twice: bool = False) -> int:
        return await super().add(number * 2, twice=twice)


class BlockingCount(Blocking[Count]):
    value = SharedAttribute[int]()
    add = blocking(Count.add)
    add_nowait = submitting(Count.add)
    to = iterating(Count.to)


class BlockingMaker(Blocking[Count]):
    copy = opening(Count.copy, BlockingCount)
    fresh = making(Count.fresh, BlockingCount)


def test_methods_of_an_asynchronous_object_are_called_on_the_loop() -> None:
    original = Count()
    count = BlockingCount(original)
    assert (count.add(2), count.add(3, twice=True), count.add_nowait(1).result(30), count.value) == (2, 8, 9, 9)
    assert list(count.to(12)) == [10, 11, 12]
    assert original.threads == {"bookkeeper-sync"}
    with pytest.raises(ValueError, match="negative"):
        count.add(-1)
    assert isinstance(BlockingCount.value, SharedAttribute)


def test_what_an_asynchronous_object_makes_becomes_its_twin() -> None:
    maker = BlockingMaker(Count(5))
    assert (maker.copy().add(1), maker.fresh().add(1)) == (6, 1)


def test_a_method_that_a_derived_class_replaces_is_called() -> None:
    assert BlockingCount(DoubleCount()).add(2) == 4


def test_help_is_that_of_the_asynchronous_method() -> None:
    assert BlockingCount.add.__doc__ == "Add a number."
    assert list(inspect.signature(BlockingCount.add).parameters) == ["self", "number", "twice"]
    assert "without waiting" in str(BlockingCount.add_nowait.__doc__)
