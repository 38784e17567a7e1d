"""Blows come in order, with quiet around each."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.testing import World
from examples.demo_kit.story import strike


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
