"""What the story learns from the gateway's feed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from examples.flights.events import Feed, FeedProgress

pytest.importorskip("aiohttp")
from aiohttp import web


def renamed(path: str) -> dict[str, Any]:
    """As Spark makes an atomic file: a temporary one, renamed."""
    return {"op": "rename", "path": f"{path}.tmp", "destination": path}


async def told(*events: dict[str, Any]) -> FeedProgress:
    feed = Feed("http://127.0.0.1:1/events")
    for event in events:
        await feed._on_event(event)
    return feed.watch


async def test_offsets_and_commits_move_with_their_files() -> None:
    watch = await told(renamed("/c/offsets/0"), renamed("/c/offsets/1"), {"op": "create", "path": "/c/commits/0"})
    assert (watch.offsets, watch.commits) == (1, 0)


async def test_a_file_that_comes_again_moves_nothing_back() -> None:
    watch = await told(renamed("/c/offsets/7"), renamed("/c/offsets/3"))
    assert watch.offsets == 7


async def test_state_files_count_since_the_last_batch_was_planned() -> None:
    state = renamed("/c/state/0/1/5.delta")
    assert (await told(state, renamed("/c/offsets/5"), state, renamed("/c/state/0/0/5.delta"))).state_since_offsets == 2
    assert (await told(state, renamed("/c/offsets/5"))).state_since_offsets == 0


@pytest.mark.parametrize(
    "event",
    [
        {"op": "delete", "path": "/c/offsets/9"},
        {"op": "create", "path": "/c/offsets/.9.tmp"},
        {"op": "create", "path": "/c/offsets/9.tmp"},
        {"op": "mkdirs", "path": "/c/offsets"},
        {"op": "create", "path": "/c/state/0/1/.5.delta.tmp"},
        {"op": "create", "path": "/c/metadata"},
        {"op": "rename"},
        {},
    ],
)
async def test_anything_else_means_nothing(event: dict[str, Any]) -> None:
    assert await told(event) == FeedProgress()


@asynccontextmanager
async def gateway(*answers: bytes) -> AsyncIterator[str]:
    """A server whose feed answers with these, one a connection; the last one stays open."""
    waiting = list(answers)
    ended = asyncio.Event()

    async def events(request: web.Request) -> web.StreamResponse:
        if waiting[0] == b"503":
            raise web.HTTPServiceUnavailable(text=waiting.pop(0).decode())
        reply = web.StreamResponse()
        await reply.prepare(request)
        await reply.write(waiting.pop(0))
        if not waiting:
            await ended.wait()
        return reply

    app = web.Application()
    app.router.add_get("/events", events)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/events"
    finally:
        ended.set()
        await runner.cleanup()


async def test_the_feed_is_read_line_by_line_and_taken_up_again_when_the_gateway_goes_away() -> None:
    first = b"\n" + json.dumps(renamed("/c/offsets/0")).encode() + b"\n: keep alive\n"
    second = b"data: " + json.dumps(renamed("/c/commits/0")).encode() + b"\n\n"
    async with gateway(first, b"503", second) as url:
        feed = Feed(url)
        following = asyncio.ensure_future(feed.follow())
        watch = await asyncio.wait_for(feed.until(lambda w: w.commits >= 0), 20)
        assert (watch.offsets, watch.commits) == (0, 0)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_who_waits_for_what_is_there_already_goes_on_at_once() -> None:
    feed = Feed("http://127.0.0.1:1/events")
    await feed._on_event(renamed("/c/offsets/4"))
    assert (await asyncio.wait_for(feed.until(lambda w: w.offsets > w.commits), 5)).offsets == 4
