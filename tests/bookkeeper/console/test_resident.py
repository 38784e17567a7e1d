"""Values that are made again while somebody looks: on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from bookkeeper.console.resident import Resident
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.testing.world import Node, World

Work = Callable[[], Awaitable[int]]


async def _on(node: Node, work: Coroutine[Any, Any, None]) -> None:
    await node.run(work)


class Made:
    """Counts, and takes as long as it is told."""

    def __init__(self) -> None:
        self.count = 0
        self.takes_s = 0.0
        self.error: Exception | None = None

    async def __call__(self) -> int:
        await asyncio.sleep(self.takes_s)
        self.count += 1
        if self.error is not None:
            raise self.error
        return self.count


def run(story: Callable[[Resident[int], Made], Awaitable[None]], **options: float) -> None:
    world = World(1)
    node = world.node("console")

    async def main() -> None:
        made = Made()
        resident = Resident(made, node.seams.clock, **{"every_s": 5.0, "idle_s": 60.0, **options})
        task = asyncio.get_running_loop().create_task(resident.run())
        await story(resident, made)
        task.cancel()

    with world:
        world.run(_on(node, main()))


def test_it_is_made_again_while_somebody_looks_and_not_when_nobody_does() -> None:
    async def story(resident: Resident[int], made: Made) -> None:
        await asyncio.sleep(31)
        assert made.count == 7 and resident.get().value == 7
        await asyncio.sleep(1000)
        idle = made.count
        assert idle <= 7 + 60 / 5 + 1
        await asyncio.sleep(1000)
        assert made.count == idle
        assert resident.get().value == idle, "a look does not wait"
        await asyncio.sleep(0.1)
        assert made.count == idle + 1, "and has it made again at once"

    run(story)


def test_it_is_made_for_a_tenth_of_the_time_at_most() -> None:
    async def story(resident: Resident[int], made: Made) -> None:
        made.takes_s = 3.0
        await asyncio.sleep(3.5)
        kept = resident.get()
        assert kept.value == 1 and kept.took_s == 3.0
        await asyncio.sleep(29)
        assert made.count == 1
        await asyncio.sleep(1)
        assert made.count == 2

    run(story)


def test_a_failure_keeps_the_last_value_and_says_why() -> None:
    async def story(resident: Resident[int], made: Made) -> None:
        await asyncio.sleep(0.1)
        for error, says in (
            (MetadataUnavailableError("the store is away"), "the store is away"),
            (KeyError("x"), "log"),
        ):
            made.error = error
            await asyncio.sleep(5)
            kept = resident.get()
            assert kept.value == 1 and says in kept.problem
        made.error = None
        await asyncio.sleep(5)
        assert resident.get().problem == "" and resident.get().value == 4

    run(story)


def test_patience_ends() -> None:
    async def story(resident: Resident[int], made: Made) -> None:
        made.takes_s = 100.0
        await asyncio.sleep(2.5)
        assert resident.get().problem == "it took longer than 2 s" and resident.get().value is None

    run(story, patience_s=2.0)


def test_what_was_changed_is_shown_at_once() -> None:
    async def story(resident: Resident[int], made: Made) -> None:
        await asyncio.sleep(0.1)
        resident.want()
        await asyncio.sleep(0.1)
        assert made.count == 2

    run(story)
