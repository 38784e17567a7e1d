"""Tasks with an owner."""

from __future__ import annotations

import asyncio
import logging

import pytest

from bookkeeper.client.tasks import Tasks


@pytest.mark.rule("P7")
async def test_what_a_task_raises_reaches_its_owner() -> None:
    errors: list[BaseException] = []
    tasks = Tasks("owner", on_error=errors.append)

    async def fail() -> None:
        raise ValueError("no")

    tasks.start(fail(), "fail")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [str(error) for error in errors] == ["no"]


@pytest.mark.rule("P7")
async def test_without_an_owner_who_listens_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("no")

    with caplog.at_level(logging.ERROR):
        Tasks("nobody").start(fail(), "fail")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert "nobody: fail ended with an error" in caplog.text


async def test_what_somebody_awaits_is_told_to_them_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("no")

    with caplog.at_level(logging.ERROR), pytest.raises(ValueError, match="no"):
        await Tasks("owner").start(fail(), "fail", awaited=True)
    assert not caplog.records


@pytest.mark.rule("P4")
async def test_close_cancels_all_and_waits_for_their_end_but_never_for_its_own_caller() -> None:
    tasks, ended = Tasks("owner"), []

    async def last_words() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            ended.append("ended")

    async def closer() -> None:
        await tasks.close()
        ended.append("closed")

    tasks.start(last_words(), "sleep")
    await asyncio.sleep(0)
    await tasks.start(closer(), "close")
    assert ended == ["ended", "closed"]
    assert tasks.closed


async def test_an_owner_that_has_left_is_not_told_and_the_log_is(caplog: pytest.LogCaptureFixture) -> None:
    errors: list[BaseException] = []
    tasks = Tasks("owner", on_error=errors.append)

    async def fail() -> None:
        raise ValueError("no")

    tasks.leave()
    with caplog.at_level(logging.ERROR):
        tasks.start(fail(), "fail")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert errors == [] and "owner: fail ended with an error" in caplog.text
