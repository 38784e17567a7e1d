"""Effects performed, events reported: a writer among bookies that fail, refuse and hang."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from bookkeeper.errors import (
    AddTimeoutError,
    ClientClosedError,
    LedgerFencedError,
    UnauthorizedError,
)
from bookkeeper.wire import GetBookieInfo
from tests.bookkeeper.client.scripted import CONFIG, ScriptedCluster, payload_of


@pytest.mark.rule("W9", "W6")
def test_one_fenced_reply_ends_the_writer_and_its_pending_appends_are_unknown() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"kept")
            fenced, *others = ledger.metadata.last_fragment.ensemble
            cluster[fenced].fenced.add(ledger.id)
            for name in others:
                cluster[name].silent = True
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"unknown")
            with pytest.raises(LedgerFencedError):
                ledger.append_nowait(b"refused")
            with pytest.raises(LedgerFencedError):
                await ledger.close()
            assert ledger.closed and ledger.last_add_confirmed == 0
            assert len((await bk.metadata(ledger.id)).fragments) == 1  # never an ensemble change

    ScriptedCluster(bookies=4).run(story)


def test_another_password_than_the_bookies_hold_is_told_as_such() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"right")
            for bookie in cluster.bookies:
                bookie.keys[ledger.id] = b"k" * 20
            with pytest.raises(UnauthorizedError):
                await ledger.append(b"x")

    ScriptedCluster().run(story)


@pytest.mark.rule("W5", "W1")
def test_a_bookie_that_dies_is_replaced_and_the_caller_sees_nothing() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            ids = [await ledger.append(b"a") for _ in range(10)]
            victim = ledger.metadata.last_fragment.ensemble[1]
            cluster.world.node(victim).crash()
            ids += [await ledger.append(b"b") for _ in range(10)]
            assert ids == list(range(20))
            last = ledger.metadata.last_fragment
            assert victim not in last.ensemble and 10 <= last.first_entry <= 20
        assert ledger.metadata.is_closed and ledger.metadata.last_entry == 19
        for entry in range(last.first_entry, 20):
            assert sum(entry in b.entries.get(ledger.id, {}) for b in cluster.bookies) >= 2

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("V1", "W6")
def test_with_all_bookies_gone_appends_end_within_the_time_limit_and_say_why() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"kept")
            for name in ("b1", "b2", "b3"):
                cluster.world.node(name).crash(power=False)
            began = asyncio.get_running_loop().time()
            with pytest.raises(
                AddTimeoutError, match=r"by an ack quorum \(2 bookies\) within 4000 ms; failed bookies: "
            ):
                await ledger.append(b"lost")
            assert asyncio.get_running_loop().time() - began < 4.5
            await ledger.close()  # nobody else decided: the writer may still close it at what was confirmed
            assert (await bk.metadata(ledger.id)).last_entry == 0

    ScriptedCluster().run(story)


@pytest.mark.rule("W15")
def test_a_bookie_that_hangs_neither_blocks_the_appender_nor_fails_the_ledger() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"x")
            cluster["b1"].silent = True
            loop = asyncio.get_running_loop()
            for _ in range(100):
                began = loop.time()
                await ledger.append(b"y")
                assert loop.time() - began < 0.1
                await asyncio.sleep(0.02)
            assert ledger.failed_bookies == ("b1",)

    ScriptedCluster().run(story)


@pytest.mark.parametrize("shape", [(4, 3, 2), (4, 2, 2), (3, 2, 1), (1, 1, 1)], ids=str)
def test_every_bookie_gets_its_stripe_and_only_that(shape: tuple[int, int, int]) -> None:
    ensemble, write_quorum, ack_quorum = shape

    async def story(cluster: ScriptedCluster) -> None:
        async with (
            cluster.connect() as bk,
            await bk.create_ledger(ensemble=ensemble, write_quorum=write_quorum, ack_quorum=ack_quorum) as ledger,
        ):
            futures = [ledger.append_nowait(b"%d" % i) for i in range(100)]
            assert [await f for f in futures] == list(range(100))
            assert await ledger.append_many([b"x"] * 50) == range(100, 150)
            await asyncio.sleep(1)
            for entry in range(150):
                holders = [b.id for b in cluster.bookies if entry in b.entries.get(ledger.id, {})]
                assert sorted(holders) == sorted(ledger.metadata.write_set(entry))

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.parametrize("digest", ["crc32", "hmac", "dummy"])
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_every_digest_and_both_protocols(digest: str, protocol: str) -> None:
    config = CONFIG.__class__(protocol=protocol)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk:
            async with await bk.create_ledger(
                password=b"pw", digest=digest, unsafe_without_digest=digest == "dummy"
            ) as ledger:
                await ledger.append_many([b"a", b"bc"])
            assert payload_of(cluster["b1"].entries[ledger.id][1], digest, b"pw") == b"bc"
            async with await bk.open_ledger(ledger.id, b"pw") as reader:
                assert [tuple(e) async for e in reader.read(0, 1)] == [(0, b"a"), (1, b"bc")]

    ScriptedCluster().run(story)


@pytest.mark.parametrize("entries", [0, 1])
def test_bookies_are_told_of_a_close_if_they_have_heard_of_the_ledger(entries: int) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger() as ledger:
                for _ in range(entries):
                    await ledger.append(b"x")
                await asyncio.sleep(1)  # the connections stand
            await asyncio.sleep(1)
            told = [r.closed_ledger for b in cluster.bookies for r in b.requests if isinstance(r, GetBookieInfo)]
        assert told == [ledger.id] * (3 * entries)

    ScriptedCluster().run(story)


@pytest.mark.rule("V1", "W6")
def test_after_an_error_nobody_expected_the_handle_takes_nothing_more_and_nobody_waits_for_ever() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"kept")

            async def broken(*details: object) -> None:
                raise RuntimeError("nobody expects this")

            ledger._shell.record.write = broken  # type: ignore[method-assign, assignment]
            cluster.world.node(ledger.metadata.last_fragment.ensemble[0]).crash(power=False)
            await asyncio.sleep(2)
            async with asyncio.timeout(60):
                for _ in range(3):
                    with pytest.raises(ClientClosedError, match="nobody expects this"):
                        await ledger.append(b"late")
                with pytest.raises(ClientClosedError):
                    await ledger.close()
            assert ledger.closed and ledger.last_add_confirmed == 0
            assert not (await bk.metadata(ledger.id)).is_closed  # a recovery decides its end

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.parametrize("entries", [0, 3])
@pytest.mark.parametrize("how", ["closed", "abandoned"])
def test_a_handle_that_has_ended_is_freed_with_its_last_reference(how: str, entries: int) -> None:
    """Cause: a hundred objects of each ledger were a circle; the collector took a fifth of a client that made many."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            for _ in range(entries):
                await ledger.append(b"x")
            shell: object = ledger._shell
            parts = [weakref.ref[object](each) for each in (ledger, shell, ledger._shell._lac_sender)]
            del shell
            gc.disable()
            try:
                await (ledger.close() if how == "closed" else ledger.abandon())
                del ledger
                await asyncio.sleep(1)
                assert [part() for part in parts] == [None] * 3
            finally:
                gc.enable()

    ScriptedCluster().run(story)
