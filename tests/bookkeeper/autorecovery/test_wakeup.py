"""A ring is not lost, and the clock wakes, too."""

from __future__ import annotations

import asyncio

from bookkeeper.autorecovery.wakeup import Wakeup
from bookkeeper.testing.world import SimLoop


def timed(story: object) -> float:
    loop = SimLoop()
    try:
        began = loop.time()
        loop.run_until_complete(story)  # type: ignore[arg-type]
        return loop.time() - began
    finally:
        loop.close()


def test_a_ring_before_the_wait_ends_it_at_once_and_counts_once() -> None:
    async def story() -> None:
        wakeup = Wakeup()
        wakeup.ring()
        wakeup.ring()
        await wakeup.wait(10)
        await wakeup.wait(3)

    assert timed(story()) == 3


def test_a_ring_during_the_wait_ends_it() -> None:
    async def story() -> None:
        wakeup = Wakeup()
        asyncio.get_running_loop().call_later(2, wakeup.ring)
        await wakeup.wait(10)

    assert timed(story()) == 2
