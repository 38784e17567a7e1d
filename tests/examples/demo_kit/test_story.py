"""Blows come in order, with quiet around each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bookkeeper.testing import World
from examples.demo_kit.cluster import DemoError
from examples.demo_kit.story import DemoPlan, DemoStory, strike
from examples.processes import Children


def test_blows_come_in_order_with_quiet_around_each() -> None:
    with World(1) as world:
        struck: list[tuple[str, float]] = []

        def blow(name: str) -> None:
            struck.append((name, world.loop.time()))

        async def first() -> None:
            blow("first")

        async def second() -> None:
            blow("second")

        world.run(strike((first, second), 5.0))
        assert struck == [("first", 5.0), ("second", 10.0)]
        assert world.loop.time() == 15.0


def test_no_blow_after_something_has_failed() -> None:
    def check() -> None:
        raise ValueError("a client has ended")

    async def never() -> None:
        pytest.fail("it was struck")

    with pytest.raises(ValueError, match="a client has ended"):
        asyncio.run(strike((never,), 0.0, check))


@pytest.mark.rule("V9")
async def test_what_is_waited_for_ends_when_nothing_happens_any_more(tmp_path: Path) -> None:
    class Story(DemoStory[DemoPlan, Any, None, Any]):
        async def start(self) -> None: ...

        async def judge(self) -> None: ...

    plan = DemoPlan(directory=tmp_path, limit_s=0.1)
    story = Story(plan, Children(tmp_path / "logs"), SimpleNamespace(picture=None), None)
    assert await story.within(asyncio.sleep(0, "done"), "it did not end") == "done"
    never = asyncio.get_running_loop().create_future()
    with pytest.raises(DemoError, match=r"^nobody came: it is not there, and .*; see .*logs$"):
        await story.within(never, "nobody came")
    assert never.cancelled()
