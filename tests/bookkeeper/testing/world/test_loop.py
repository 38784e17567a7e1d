"""A loop without a system under it."""

from __future__ import annotations

import asyncio
import gc
import sys

import pytest

from bookkeeper.seams import Seams
from bookkeeper.testing import SimDeadlockError, World


def test_time_jumps_and_a_wait_for_nothing_is_an_error() -> None:
    with World(0) as world:

        async def sleep() -> float:
            await asyncio.sleep(1000)
            return world.loop.time()

        assert world.run(sleep()) == 1000
        forever = asyncio.Event()
        with pytest.raises(TimeoutError):
            world.run(forever.wait(), within_s=5)
        with pytest.raises(SimDeadlockError):
            world.loop.run_until_complete(forever.wait())


def test_nothing_of_the_system_is_there() -> None:
    with World(0) as world:

        async def main() -> None:
            loop = asyncio.get_running_loop()
            with pytest.raises(RuntimeError, match="no threads"):
                await loop.run_in_executor(None, print)
            with pytest.raises(RuntimeError, match="no names"):
                await loop.getaddrinfo("localhost", 80)

        world.run(main())


def test_timers_due_at_one_moment_run_in_the_order_of_their_making() -> None:
    with World(0) as world:
        seen: list[int] = []

        async def main() -> None:
            for i in range(20):
                asyncio.get_running_loop().call_at(1.0, seen.append, i)
            await asyncio.sleep(2)

        world.run(main())
        assert seen == list(range(20))


def test_who_is_busy_for_ever_at_one_moment_is_an_error_too() -> None:
    with World(9) as world:

        async def spin() -> None:
            while True:  # noqa: ASYNC110
                await asyncio.sleep(0)

        with pytest.raises(SimDeadlockError, match="busy for ever"):
            world.run(spin())


@pytest.mark.parametrize("end", ["never run", "crashed", "frozen"])
def test_a_task_that_never_began_is_let_go_of_in_silence(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    async def work(seams: Seams) -> None:
        await asyncio.sleep(1)

    with World(1) as world:
        node = world.node("a")

        async def main() -> None:
            node.start(work)
            if end == "crashed":
                node.crash()
            else:
                node.freeze()
            await asyncio.sleep(1)

        if end == "never run":
            node.start(work)
        else:
            world.run(main())
    gc.collect()
    assert complaints == []


@pytest.mark.parametrize("end", ["crashed", "frozen", "alive"])
def test_what_a_task_would_clean_up_complains_to_nobody_when_its_host_is_gone(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clean-up asked for the running task, and the collector told of it in whatever test ran then."""
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    cleaned: list[str] = []

    async def work(seams: Seams) -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            try:
                await asyncio.sleep(0)
            finally:
                cleaned.append("second")
                asyncio.current_task()

    with World(1) as world:
        node = world.node("a")

        async def main() -> None:
            node.start(work)
            await asyncio.sleep(1)
            if end == "crashed":
                node.crash()
            elif end == "frozen":
                node.freeze()
            await asyncio.sleep(1)
            gc.collect()
            assert cleaned == []  # a host that is gone does nothing more

        world.run(main())
    assert cleaned == ["second"]
    gc.collect()
    assert complaints == []
