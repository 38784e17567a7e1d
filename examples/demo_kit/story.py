"""What the stories of all demos have: what a person may choose, a cluster, blows with quiet between them, a verdict."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.launchers.waiting import ProgressSource, StalledError, until_async
from examples.demo_kit.cluster import DemoCluster, DemoError
from examples.demo_kit.slow_machine import client_config
from examples.demo_kit.view import DemoView
from examples.processes import Children

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPlan:
    """What a person may choose, and how long things take."""

    directory: Path
    metadata: str = "sqlite"
    sabotage: bool = False
    pause_s: float = 8.0
    """Quiet between two blows."""
    limit_s: float = 60.0
    """How long what is waited for may make no progress, on a machine of the reference's speed."""


class DemoVerdict(Protocol):
    """What the comparison at the end has found."""

    @property
    def good(self) -> bool: ...

    @property
    def problems(self) -> Sequence[str]:
        """Everything that is wrong, as lines for people."""


Plan = TypeVar("Plan", bound=DemoPlan)
View = TypeVar("View", bound=DemoView[Any])
Facts = TypeVar("Facts")
Verdict = TypeVar("Verdict", bound=DemoVerdict)


class DemoStory(ABC, Generic[Plan, View, Facts, Verdict]):
    """The whole of it: a start, one blow after the other, and a verdict."""

    def __init__(self, plan: Plan, children: Children, view: View, facts: Facts) -> None:
        self.plan, self.children, self.view, self.picture = plan, children, view, view.picture
        self.facts = facts
        """What was done, for the table and the last line."""
        self.cluster = DemoCluster(plan.directory, children, plan.metadata)
        self.client: BookKeeper
        self.stack = AsyncExitStack()
        """What is closed in the end."""
        self.tasks: list[asyncio.Task[None]] = []
        """They are cancelled in the end."""

    async def run(self) -> Verdict:
        """Tell the story, and judge. Raises: DemoError."""
        async with self.stack:
            try:
                await self.start()
                await self.strike()
                return await self.judge()
            finally:
                for task in self.tasks:
                    task.cancel()
                await asyncio.gather(*self.tasks, return_exceptions=True)

    async def start_bookies(self, names: Sequence[str], *, small: str = "") -> None:
        """Start the metadata store and bookies, one of them with a small disk, and connect to them."""
        await self.cluster.start_metadata()
        for name in names:
            await self.cluster.start_bookie(name, small=name == small)
        opening = BookKeeper.connect(self.cluster.uri, config=client_config(ClientConfig(delete_grace_s=0)))
        self.client = await self.stack.enter_async_context(opening)

        async def are_up() -> bool:
            return set(names) <= set(await self.client.metadata_store.bookies.writable())

        await self.cluster.until(are_up, f"the bookies {', '.join(names)}")

    @abstractmethod
    async def start(self) -> None:
        """Bring everything up."""

    async def strike(self) -> None:
        """Strike one blow after the other."""
        await strike(self.blows, self.plan.pause_s, self.check)

    @property
    def blows(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """What is done, in this order."""
        return ()

    def check(self) -> None:
        """Raise DemoError if something has failed meanwhile."""

    @abstractmethod
    async def judge(self) -> Verdict:
        """Let everything come to its end, and compare."""

    def beside(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run ``work`` beside the story, to its end."""
        self.tasks.append(asyncio.create_task(work, name=name))

    async def within(self, work: Awaitable[T], text: str) -> T:
        """Wait for ``work``, as long as anything that the demo has started makes progress.

        Raises:
            DemoError: nothing has happened for the plan's limit.
        """
        task = asyncio.ensure_future(work)
        logs = self.plan.directory / "logs"
        watched = ProgressSource(files=[logs], pids=[os.getpid()])
        try:
            await until_async(task.done, "it", watched, quiet_s=self.plan.limit_s)
            return await task
        except StalledError as error:
            raise DemoError(f"{text}: {error}; see {logs}") from None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def strike(
    blows: Sequence[Callable[[], Awaitable[None]]], pause_s: float, check: Callable[[], None] = lambda: None
) -> None:
    """Strike one blow after the other, with so much quiet before each and after the last.

    Args:
        check: raises if something has failed meanwhile.
    """
    for blow in blows:
        await asyncio.sleep(pause_s)
        check()
        await blow()
    await asyncio.sleep(pause_s)
