"""Quiet ledgers are waited for with one long poll each; news come once."""

from __future__ import annotations

import asyncio

from bookkeeper import BookKeeper, WriteHandle
from bookkeeper.testing.cluster import SimCluster


async def quiet(client: BookKeeper, ledger: WriteHandle, last: int, news: list[float]) -> object:
    loop = asyncio.get_running_loop()
    return client.quiet_ledgers.watch(
        ledger.id, await client.metadata(ledger.id), last, lambda: news.append(loop.time())
    )


def run(story: object) -> None:
    async def main(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            await story(cluster, client)  # type: ignore[operator]

    SimCluster(seed=3).run(main)


def test_an_append_a_close_and_a_recovery_are_news() -> None:
    async def story(cluster: SimCluster, client: BookKeeper) -> None:
        for change in ("append", "close", "recover"):
            ledger = await client.create_ledger()
            await ledger.append(b"x")
            await asyncio.sleep(1)
            news: list[float] = []
            await quiet(client, ledger, 0, news)
            await asyncio.sleep(70)
            assert news == []
            began = asyncio.get_running_loop().time()
            if change == "append":
                await ledger.append(b"y")
            elif change == "close":
                await ledger.close()
            else:
                await (await client.open_ledger(ledger.id)).close()
            await asyncio.sleep(5)
            assert len(news) == 1 and news[0] - began < 1, change
            assert len(client.quiet_ledgers) == 0

    run(story)


def test_a_bookie_that_fails_does_not_hide_the_news() -> None:
    async def story(cluster: SimCluster, client: BookKeeper) -> None:
        ledger = await client.create_ledger()
        await ledger.append(b"x")
        await asyncio.sleep(1)
        waits: list[list[float]] = [[] for _ in range(6)]
        for news in waits:
            await quiet(client, ledger, 0, news)
        await asyncio.sleep(1)
        cluster.world.node("b2").crash()
        await asyncio.sleep(20)
        began = asyncio.get_running_loop().time()
        await ledger.append(b"y")
        await asyncio.sleep(30)
        assert all(len(news) == 1 for news in waits)
        assert all(news[0] - began < 15 or news[0] < began for news in waits)

    run(story)


def test_closing_a_wait_or_the_client_ends_it() -> None:
    async def story(cluster: SimCluster, client: BookKeeper) -> None:
        ledger = await client.create_ledger()
        await ledger.append(b"x")
        await asyncio.sleep(1)
        news: list[float] = []
        wait = await quiet(client, ledger, 0, news)
        wait.close()  # type: ignore[attr-defined]
        await ledger.append(b"y")
        await asyncio.sleep(1)
        assert news == []
        await quiet(client, ledger, 1, news)
        await client.close()
        assert len(news) == 1

    run(story)


def test_a_time_to_look_is_news_too() -> None:
    async def story(cluster: SimCluster, client: BookKeeper) -> None:
        ledger = await client.create_ledger()
        await ledger.append(b"x")
        await asyncio.sleep(1)
        loop = asyncio.get_running_loop()
        news: list[float] = []
        began = loop.time()
        metadata = await client.metadata(ledger.id)
        client.quiet_ledgers.watch(ledger.id, metadata, 0, lambda: news.append(loop.time()), began + 90)
        await asyncio.sleep(89)
        assert news == []
        await asyncio.sleep(10)
        assert len(news) == 1 and 90 <= news[0] - began < 95
        assert len(client.quiet_ledgers) == 0

    run(story)
