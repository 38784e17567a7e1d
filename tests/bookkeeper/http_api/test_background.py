"""Work that goes on after its reply."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.http_api.background import BackgroundWork
from bookkeeper.http_api.request import RefusedRequestError


def test_the_same_work_runs_once_at_a_time_and_its_end_is_told() -> None:
    async def main() -> None:
        told: list[tuple[str, str, str]] = []
        ended = asyncio.Event()

        def note(who: str, what: str, problem: str) -> None:
            told.append((who, what, problem))
            ended.set()

        background, gate, begun = BackgroundWork(note), asyncio.Event(), []

        async def work() -> str:
            begun.append(1)
            await gate.wait()
            return "two ledgers are stuck"

        for _ in range(3):
            background.begin("drain", "operator", work)
        await asyncio.sleep(0)
        assert len(begun) == 1 and background.running == {"drain"}
        gate.set()
        await ended.wait()
        assert told == [("operator", "drain", "two ledgers are stuck")] and not background.running

    asyncio.run(main())


def test_work_that_is_under_way_is_not_taken_for_another_one() -> None:
    """A decommission that keeps the cookie is under way; one that removes it was not done, and is not told to be."""

    async def main() -> None:
        background, gate, begun = BackgroundWork(lambda who, what, problem: None), asyncio.Event(), []

        async def work() -> str:
            begun.append(1)
            await gate.wait()
            return ""

        for _ in range(2):
            background.begin("decommission of b1", "operator", work, how=False)
        await asyncio.sleep(0)
        with pytest.raises(RefusedRequestError, match="with other parameters") as refused:
            background.begin("decommission of b1", "operator", work, how=True)
        assert refused.value.status == 409 and len(begun) == 1
        await background.close()

    asyncio.run(main())


def test_work_that_fails_is_told_with_its_reason_and_can_be_asked_for_again() -> None:
    async def main() -> None:
        told: list[str] = []
        ended = asyncio.Event()

        def note(who: str, what: str, problem: str) -> None:
            told.append(problem)
            ended.set()

        background = BackgroundWork(note)

        async def fails() -> str:
            raise MetadataUnavailableError("the store is away")

        for _ in range(2):
            ended.clear()
            background.begin("drain", "operator", fails)
            await ended.wait()
        assert told == ["the store is away"] * 2

    asyncio.run(main())


def test_what_is_under_way_ends_with_the_server_and_nothing_begins_after_it() -> None:
    async def main() -> None:
        background = BackgroundWork(lambda who, what, problem: None)
        cancelled: list[int] = []

        async def endless() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(1)
                raise
            return ""

        background.begin("drain", "operator", endless)
        await asyncio.sleep(0)
        await background.close()
        background.begin("drain", "operator", endless)
        assert cancelled == [1] and not background.running

    asyncio.run(main())
