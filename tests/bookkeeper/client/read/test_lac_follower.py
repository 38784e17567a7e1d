"""How far one may read: asking, long polls, the end of the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from bookkeeper import wire
from bookkeeper.errors import (
    BookKeeperError,
    InvariantError,
    MetadataFormatError,
    NoSuchLedgerError,
)
from bookkeeper.wire import ReadEntry
from tests.bookkeeper.client.scripted import ScriptedBookie, ScriptedCluster


@pytest.mark.rule("L9", "L3")
def test_a_tail_hears_of_an_entry_as_soon_as_it_is_confirmed_and_ends_with_the_ledger() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                seen: list[tuple[float, int]] = []
                loop = asyncio.get_running_loop()

                async def tail() -> None:
                    async for entry in reader.tail():
                        seen.append((loop.time(), entry.entry_id))

                tailing = asyncio.ensure_future(tail())
                for i in range(10):
                    await asyncio.sleep(1.7)
                    await ledger.append(b"x")
                    began = loop.time()
                    await asyncio.sleep(0.1)
                    assert seen[-1][1] == i and seen[-1][0] - began < 0.1
                await ledger.close()
                await asyncio.wait_for(tailing, 3)
                assert [entry_id for _, entry_id in seen] == list(range(10))

    ScriptedCluster().run(story)


@pytest.mark.rule("L9")
def test_entries_that_are_confirmed_together_come_with_two_polls_and_without_a_read() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        def asked(long_poll: bool) -> int:
            reads = [r for b in cluster.bookies for r in b.requests if isinstance(r, ReadEntry)]
            return sum(r.long_poll is long_poll for r in reads)

        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                seen: list[tuple[int, bytes]] = []

                async def tail() -> None:
                    async for entry in reader.tail():
                        seen.append((entry.entry_id, entry.payload))

                tailing = asyncio.ensure_future(tail())
                for _ in range(3):  # the reader finds that entries come quickly
                    await ledger.append(b"x")
                    await asyncio.sleep(0.02)
                polls, reads = asked(True), asked(False)
                for i in range(20):
                    await ledger.append_many([b"a%d" % i, b"b%d" % i])
                    await asyncio.sleep(0.02)
                assert seen[3:] == [(3 + 2 * i + j, b"ab"[j : j + 1] + b"%d" % i) for i in range(20) for j in range(2)]
                assert asked(False) == reads, "nothing had to be asked for"
                assert asked(True) - polls == 40
                await asyncio.sleep(30)
                assert asked(True) - polls < 80, "one poll at a time again, where nothing comes"
                await ledger.close()
                await asyncio.wait_for(tailing, 3)

    ScriptedCluster().run(story)


@pytest.mark.rule("L9", "V7")
def test_polls_that_bring_nothing_early_become_rarer_and_news_makes_them_frequent_again() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append_many([b"a", b"b"])
            await asyncio.sleep(1)
            for bookie in cluster.bookies:
                bookie.polls_wait = False

            def polls() -> int:
                return sum(isinstance(r, ReadEntry) and r.long_poll for b in cluster.bookies for r in b.requests)

            async with await other.open_ledger(ledger.id, recovery=False) as reader:

                async def tail() -> list[int]:
                    return [entry.entry_id async for entry in reader.tail()]

                tailing = asyncio.ensure_future(tail())
                await asyncio.sleep(30)
                asked = polls()
                assert asked < 80, "about one a second"
                for _ in range(3):
                    await ledger.append(b"x")
                    await asyncio.sleep(1.1)
                assert reader.last_add_confirmed >= 3
                assert polls() - asked < 40
                await ledger.close()
                assert await asyncio.wait_for(tailing, 20) == [0, 1, 2, 3, 4]

    ScriptedCluster().run(story)


@pytest.mark.rule("L8")
def test_a_tail_survives_the_metadata_store_and_a_lost_watch() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            async with await other.open_ledger(ledger.id, recovery=False) as reader:

                async def tail() -> list[int]:
                    return [entry.entry_id async for entry in reader.tail()]

                tailing = asyncio.ensure_future(tail())
                await ledger.append(b"a")
                cluster.store.expire(other.metadata_store.store)  # type: ignore[arg-type]
                cluster.store.begin_outage()
                await ledger.append(b"b")
                await asyncio.sleep(5)
                cluster.store.end_outage()
                await ledger.append(b"c")
                await ledger.close()
                assert await asyncio.wait_for(tailing, 20) == [0, 1, 2]

    ScriptedCluster().run(story)


def test_a_tail_of_a_deleted_ledger_ends_with_the_reason_and_one_that_is_closed_here_ends_quietly() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"a")
            async with await other.open_ledger(ledger.id, recovery=False) as reader:

                async def tail() -> list[int]:
                    return [entry.entry_id async for entry in reader.tail()]

                ends_quietly = asyncio.ensure_future(tail())
                await asyncio.sleep(0.5)
            assert await ends_quietly == [0]
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                told = asyncio.ensure_future(tail())
                await asyncio.sleep(0.5)
                await bk.metadata_store.ledgers.delete(ledger.id)  # by somebody who does not close it first
                with pytest.raises(NoSuchLedgerError):
                    await told
            await ledger.abandon()

    ScriptedCluster().run(story)


def test_read_last_add_confirmed_asks_those_who_know() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"a")
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                await ledger.append_many([b"b"] * 9)
                await asyncio.sleep(0.1)
                assert await reader.read_last_add_confirmed() == 9  # by an explicit one (W16)
                cluster["b1"].silent = True
                await ledger.append(b"c")
                await asyncio.sleep(0.1)
                assert await reader.read_last_add_confirmed() == 10
                await ledger.close()
                assert await reader.read_last_add_confirmed() == 10
                assert reader.closed
                assert reader.length == 11

    ScriptedCluster().run(story)


@pytest.mark.rule("L8", "L3")
@pytest.mark.parametrize("trouble", ["metadata that nobody can read", "an entry that promised too much"])
def test_a_tail_that_cannot_follow_its_ledger_any_more_says_so(trouble: str) -> None:
    """Otherwise it would wait for ever: the end of a ledger is told by its metadata alone."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"a")
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                expected: type[BookKeeperError]
                if trouble.startswith("metadata"):
                    store, expected = bk.metadata_store.store, MetadataFormatError
                    waiting = asyncio.ensure_future(reader.wait_last_add_confirmed(5, timeout_ms=60_000))
                    await asyncio.sleep(0.5)
                    await store.set(bk.metadata_store.ledgers.path(ledger.id), b"nonsense", None)
                else:
                    expected = InvariantError
                    reader._follower.on_lac(7)  # as in an entry whose digest is right
                    waiting = asyncio.ensure_future(reader.wait_last_add_confirmed(9, timeout_ms=60_000))
                    await asyncio.sleep(0.5)
                    await ledger.close()
                with pytest.raises(expected):
                    await asyncio.wait_for(waiting, 20)

    ScriptedCluster().run(story)


@pytest.mark.rule("L9")
@pytest.mark.parametrize("timeout_ms", [20, 300, 4_500])
def test_a_wait_ends_in_its_time_though_bookies_hang(timeout_ms: int) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append_many([b"a", b"b"])
            await asyncio.sleep(1)
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                for bookie in cluster.bookies:
                    bookie.silent = True
                loop = asyncio.get_running_loop()
                began = loop.time()
                assert await reader.wait_last_add_confirmed(1, timeout_ms=timeout_ms) == 1
                assert timeout_ms - 2 <= (loop.time() - began) * 1000 < timeout_ms + 100

    ScriptedCluster().run(story)


@pytest.mark.rule("L9", "V7")
def test_a_tail_goes_on_to_the_next_bookie_when_one_hangs() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append_many([b"a", b"b"])
            await asyncio.sleep(1)
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                hung = cluster[ledger.metadata.last_fragment.ensemble[0]]
                hung.silent = True
                tail = reader.tail()
                loop = asyncio.get_running_loop()
                for expected in (b"a", b"b"):
                    assert (await anext(tail)).payload == expected
                coming = asyncio.ensure_future(anext(tail))
                await asyncio.sleep(0.1)  # the first of the ensemble is asked now
                began = loop.time()
                await ledger.append(b"c")
                assert (await coming).payload == b"c" and loop.time() - began < 2
                await ledger.abandon()

    ScriptedCluster().run(story)


@pytest.mark.rule("Q2", "Q3")
def test_a_success_that_says_nothing_is_no_answer_to_how_far_one_may_read() -> None:
    class Bare(ScriptedBookie):
        def handle(self, request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
            if isinstance(request, wire.ReadLac):
                return reply(wire.BareReply(wire.Status.OK))
            return super().handle(request, reply)

    cluster = ScriptedCluster()
    cluster.bookies[0] = Bare("b1")

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append_many([b"a", b"b"])
            await asyncio.sleep(1)
            async with await bk.open_ledger(ledger.id, recovery=False) as reader:
                assert reader.last_add_confirmed == 1
            cluster["b2"].silent = cluster["b3"].silent = True
            with pytest.raises(BookKeeperError):
                await asyncio.wait_for(bk.open_ledger(ledger.id, recovery=False), 60)

    cluster.run(story)
