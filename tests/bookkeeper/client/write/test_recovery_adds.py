"""What a repair sends to its target: in runs, within a window, and patient with a bookie that is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import pytest

from bookkeeper import wire
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.recovery_adds import RecoveryAdds
from bookkeeper.errors import BookieFailedError, BookieUnavailableError, RequestTimedOutError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import HEADER
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedBookie, ScriptedCluster

L = LedgerId(7)
KEY = b"k" * 20
B1 = BookieId("b1")
PROTOCOLS: tuple[Literal["v2", "v3"], ...] = ("v3", "v2")
Handle = Callable[[wire.Request, Callable[[wire.Reply], None]], None]


def entry(entry_id: int, size: int = 1000) -> bytes:
    return HEADER.pack(L, entry_id, -1, 0) + bytes(size)


async def send(adds: RecoveryAdds, tasks: Tasks, first: int, count: int, *, size: int = 1000) -> None:
    ids = range(first, first + count)
    await adds.send(tasks, L, ids, [entry(entry_id, size) for entry_id in ids], KEY)


def told(bookie: ScriptedBookie, handle: Handle) -> None:
    bookie.handle = handle  # type: ignore[method-assign, assignment]


async def sender(bk: BookKeeper, window_bytes: int = 1 << 20) -> tuple[RecoveryAdds, Tasks]:
    return RecoveryAdds(bk.services, B1, window_bytes=window_bytes), Tasks("adds")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_entry_comes_as_it_is_with_the_key_and_as_a_recovery_add(protocol: Literal["v2", "v3"]) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(protocol=protocol)) as bk:
            adds, tasks = await sender(bk)
            await adds.send(tasks, L, [0, 3, 4, 9], [entry(entry_id) for entry_id in (0, 3, 4, 9)], KEY)
            assert cluster["b1"].entries[L] == {entry_id: entry(entry_id) for entry_id in (0, 3, 4, 9)}
            sent = [request for request in cluster["b1"].requests if isinstance(request, wire.AddEntry)]
            assert [(add.recovery, add.priority, add.master_key) for add in sent] == [(True, 0, KEY)] * 4
            await tasks.close()

    ScriptedCluster().run(story)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_entry_that_is_refused_is_named(protocol: Literal["v2", "v3"]) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        handle = cluster["b1"].handle

        def refuse(request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
            if isinstance(request, wire.AddEntry) and request.entry_id == 2:
                reply(wire.AddReply(Status.IO_ERROR, request.ledger_id, request.entry_id))
            else:
                handle(request, reply)

        told(cluster["b1"], refuse)
        async with cluster.connect(ClientConfig(protocol=protocol)) as bk:
            adds, tasks = await sender(bk)
            with pytest.raises(BookieFailedError, match="entry 2 of ledger 7 to b1"):
                await send(adds, tasks, 0, 5)
            await send(adds, tasks, 3, 5)  # and the next run is sent
            await tasks.close()

    ScriptedCluster().run(story)


@pytest.mark.rule("A4", "V1")
def test_silence_is_no_answer_and_ends_after_the_limit() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            adds, tasks = await sender(bk)
            cluster["b1"].silent = True
            began = asyncio.get_running_loop().time()
            with pytest.raises(RequestTimedOutError, match="did not answer in time"):
                await send(adds, tasks, 0, 5)
            limit_s = bk.services.config.request_timeout_ms / 1000
            assert asyncio.get_running_loop().time() - began == pytest.approx(limit_s, abs=0.1)

    ScriptedCluster().run(story)


def test_a_bookie_that_answers_slowly_has_not_failed() -> None:
    """A target that took 2,000 entries a second, with 30,000 on their way, was given up again and again, and its ledger
    never became whole."""

    async def story(cluster: ScriptedCluster) -> None:
        handle, queued = cluster["b1"].handle, 0

        def slowly(request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
            nonlocal queued
            if not isinstance(request, wire.AddEntry):
                return handle(request, reply)
            queued += 1
            asyncio.get_running_loop().call_later(queued * 0.8 * limit_s, handle, request, reply)
            return None

        told(cluster["b1"], slowly)
        async with cluster.connect() as bk:
            limit_s = bk.services.config.request_timeout_ms / 1000
            adds, tasks = await sender(bk)
            began = asyncio.get_running_loop().time()
            await send(adds, tasks, 0, 5)
            assert asyncio.get_running_loop().time() - began > 3 * limit_s
            assert len(cluster["b1"].entries[L]) == 5

    ScriptedCluster().run(story)


def test_what_one_bookie_has_to_answer_is_bounded_and_runs_take_their_turns() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        handle = cluster["b1"].handle
        held: list[tuple[wire.Request, Callable[[wire.Reply], None]]] = []

        def hold(request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
            held.append((request, reply))

        async def arrive(count: int) -> list[int]:
            await asyncio.sleep(0.1)  # of the simulated clock: whatever is sent has come
            assert len(held) == count
            return [request.entry_id for request, _ in held if isinstance(request, wire.AddEntry)]

        def answer() -> None:
            for request, reply in held:
                handle(request, reply)
            held.clear()

        told(cluster["b1"], hold)
        async with cluster.connect() as bk:
            adds, tasks = await sender(bk, window_bytes=5000)
            runs = [
                asyncio.ensure_future(send(adds, tasks, first, count)) for first, count in ((0, 3), (10, 3), (20, 1))
            ]
            assert await arrive(3) == [0, 1, 2], "the third would fit, and waits behind the second"
            runs[1].cancel()
            assert await arrive(4) == [0, 1, 2, 20], "who is cancelled leaves its turn to the next"
            large = asyncio.ensure_future(send(adds, tasks, 30, 1, size=9000))
            assert await arrive(4) == [0, 1, 2, 20]
            answer()
            assert await arrive(1) == [30], "alone it may be larger than the window"
            answer()
            await asyncio.gather(runs[0], runs[2], large)
            assert sorted(cluster["b1"].entries[L]) == [0, 1, 2, 20, 30]

    ScriptedCluster().run(story)


def test_a_connection_that_ends_ends_the_run() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        def leave(request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
            for connection in list(cluster["b1"].connections):
                connection.close()

        told(cluster["b1"], leave)
        async with cluster.connect() as bk:
            adds, tasks = await sender(bk)
            with pytest.raises(BookieUnavailableError):
                await send(adds, tasks, 0, 5)
            assert bk.services.pool.ready(B1) is None

    ScriptedCluster().run(story)
