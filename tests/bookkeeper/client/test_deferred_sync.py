"""Deferred sync and force through a write handle, against bookies that do as they are told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import (
    BookieFailedError,
    ConfigError,
    IllegalOperationError,
    LedgerClosedError,
    LedgerFencedError,
    RequestTimedOutError,
    TooManyRequestsError,
)
from bookkeeper.ledger import HEADER
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import CONFIG, ScriptedBookie, ScriptedCluster, payload_of
from tests.bookkeeper.wire.framer import Framer


def forces(cluster: ScriptedCluster) -> int:
    return sum(isinstance(request, wire.ForceLedger) for bookie in cluster.bookies for request in bookie.requests)


def adds_to(bookie: ScriptedBookie) -> list[wire.AddEntry]:
    decoded = [wire.DialectDetector().decode(body) for body in Framer().feed(bytes(bookie.received))]
    requests = [item[1] for item in decoded if not isinstance(item, wire.RefusedFrame)]
    return [request for request in requests if isinstance(request, wire.AddEntry)]


@pytest.mark.rule("W11")
def test_appends_are_flagged_and_only_force_moves_the_last_add_confirmed() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(deferred_sync=True, password=b"pw") as ledger:
            assert await ledger.append(b"one") == 0
            assert await ledger.append_many([b"two", b"three"]) == range(1, 3)
            assert await ledger.flush() == ledger.last_add_confirmed == -1
            assert (ledger.length, ledger.pending_bytes) == (0, 0)
            await asyncio.sleep(0.1)
            adds = [add for bookie in cluster.bookies for add in adds_to(bookie)]
            assert len(adds) == 9
            assert all(add.deferred_sync for add in adds)
            assert {HEADER.unpack_from(add.entry)[2] for add in adds} == {-1}
            assert (await ledger.force(), ledger.last_add_confirmed, ledger.length) == (2, 2, 11)
            assert forces(cluster) == 3
            await asyncio.sleep(0.1)
            assert all(bookie.lac(ledger.id) == 2 for bookie in cluster.bookies)  # published by itself (W16)
        assert (ledger.metadata.last_entry, ledger.metadata.length) == (2, 11)
        assert payload_of(cluster["b1"].entries[ledger.id][2], password=b"pw") == b"three"

    ScriptedCluster().run(story)


@pytest.mark.rule("R13", "W11")
def test_close_forces_unless_it_is_told_not_to() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            for force, end in ((True, 2), (False, 0)):
                ledger = await bk.create_ledger(deferred_sync=True)
                await ledger.append(b"one")
                await ledger.force()
                await ledger.append_many([b"two", b"three"])
                await ledger.close(force=force)
                assert (await bk.metadata(ledger.id)).last_entry == ledger.last_add_confirmed == end
            async with await bk.create_ledger(deferred_sync=True) as ledger:
                ledger.append_nowait(b"the block waits for it, and forces it")
            assert (await bk.metadata(ledger.id)).last_entry == 0

    ScriptedCluster().run(story)


@pytest.mark.rule("W11")
def test_concurrent_forces_share_rounds() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(deferred_sync=True) as ledger:

            async def append_and_force() -> None:
                entry_id = await ledger.append(b"x")
                assert await ledger.force() >= entry_id

            await asyncio.gather(*(append_and_force() for _ in range(50)))
            assert forces(cluster) <= 6

    ScriptedCluster().run(story)


@pytest.mark.rule("W11")
def test_what_cannot_be_deferred_is_refused_and_says_why() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            with pytest.raises(ConfigError, match='deferred_sync needs when_short="fail"'):
                await bk.create_ledger(deferred_sync=True, when_short="name_absent")
        async with cluster.connect(ClientConfig(protocol="v2")) as bk:
            with pytest.raises(ConfigError, match='deferred_sync needs protocol="v3"'):
                await bk.create_ledger(deferred_sync=True)
            assert [ledger_id async for ledger_id in bk.list_ledgers()] == []
            async with await bk.create_ledger() as ledger:
                with pytest.raises(IllegalOperationError, match="v2 has no force"):
                    await ledger.force()

    ScriptedCluster().run(story)


@pytest.mark.rule("W11")
@pytest.mark.parametrize("how", ["crash", "refusal"])
def test_a_bookie_that_fails_ends_the_writer_and_never_changes_the_ensemble(how: str) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(deferred_sync=True)
            await ledger.append(b"written")
            victim = ledger.metadata.last_fragment.ensemble[1]
            if how == "crash":
                cluster.world.node(victim).crash(power=False)
                await asyncio.sleep(2)
            else:
                cluster[victim].refuse_adds = Status.READ_ONLY
            with pytest.raises(BookieFailedError, match=rf"{victim} failed.*no ensemble change"):
                await ledger.append(b"unknown")
                await ledger.force()
            with pytest.raises(BookieFailedError):
                await ledger.force()
            with pytest.raises(BookieFailedError):
                await ledger.close()
            stored = await bk.metadata(ledger.id)
            assert (len(stored.fragments), stored.is_closed) == (1, False)
            cluster[victim].refuse_adds = None
            async with await bk.open_ledger(ledger.id) as reader:  # a recovery keeps what the others have
                assert await reader.read_entry(0) == b"written"

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("W11")
def test_a_force_that_a_bookie_refuses_or_leaves_unanswered_fails_and_may_be_repeated() -> None:
    config = ClientConfig(force_timeout_ms=700)

    async def story(cluster: ScriptedCluster) -> None:
        loop = asyncio.get_running_loop()
        async with cluster.connect(config) as bk, await bk.create_ledger(deferred_sync=True) as ledger:
            await ledger.append(b"x")
            cluster["b2"].refuse_forces = Status.TOO_MANY_REQUESTS
            with pytest.raises(TooManyRequestsError, match="on b2"):
                await ledger.force()
            cluster["b2"].refuse_forces, cluster["b3"].silent_on_force = None, True
            began = loop.time()
            with pytest.raises(RequestTimedOutError, match=r"b3 did not answer .* within 700 ms"):
                await asyncio.gather(ledger.force(), ledger.force())
            assert 0.7 <= loop.time() - began < 0.9
            assert ledger.last_add_confirmed == -1
            cluster["b3"].silent_on_force = False
            assert await ledger.force() == 0

    ScriptedCluster().run(story)


@pytest.mark.rule("W11")
def test_an_entry_that_one_bookie_refused_is_not_forced_before_that_bookie_has_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(deferred_sync=True) as ledger:
            cluster["b2"].refuse_adds = Status.TOO_MANY_REQUESTS
            assert await ledger.append(b"x") == 0
            force = asyncio.ensure_future(ledger.force())
            await asyncio.sleep(0.05)
            assert not force.done()
            assert 0 not in cluster["b2"].entries.get(ledger.id, {})
            cluster["b2"].refuse_adds = None
            assert await asyncio.wait_for(force, 5) == 0
            assert payload_of(cluster["b2"].entries[ledger.id][0]) == b"x"

    ScriptedCluster().run(story)


@pytest.mark.rule("R13", "W11")
def test_what_a_bookie_had_no_room_for_is_sent_again_while_a_close_forces() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(deferred_sync=True)
            cluster["b2"].refuse_adds = Status.TOO_MANY_REQUESTS
            assert await ledger.append(b"x") == 0
            close = asyncio.ensure_future(ledger.close())
            await asyncio.sleep(0.05)
            assert not close.done()
            cluster["b2"].refuse_adds = None
            await asyncio.wait_for(close, 5)
            assert payload_of(cluster["b2"].entries[ledger.id][0]) == b"x"
            assert (await bk.metadata(ledger.id)).last_entry == 0

    ScriptedCluster().run(story)


@pytest.mark.rule("R13", "W11")
def test_a_bookie_that_has_no_room_for_the_force_of_a_close_is_asked_again() -> None:
    config = ClientConfig(force_timeout_ms=2_000)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk:
            for comes_back in (True, False):
                ledger = await bk.create_ledger(deferred_sync=True)
                await ledger.append(b"x")
                cluster["b2"].refuse_forces = Status.TOO_MANY_REQUESTS
                close = asyncio.ensure_future(ledger.close())
                await asyncio.sleep(0.5)
                assert not close.done()
                if comes_back:
                    cluster["b2"].refuse_forces = None
                    await close
                else:
                    with pytest.raises(RequestTimedOutError, match="b2 did not answer"):
                        await close
                assert (await bk.metadata(ledger.id)).is_closed is comes_back

    ScriptedCluster().run(story)


@pytest.mark.rule("W9", "W11")
def test_a_fenced_writer_ends_with_its_forces() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(deferred_sync=True)
            await ledger.append(b"x")
            for bookie in cluster.bookies:
                bookie.silent_on_force, bookie.fence_at = True, 1
            force = asyncio.ensure_future(ledger.force())
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"fenced")
            with pytest.raises(LedgerFencedError):
                await force

    ScriptedCluster().run(story)


@pytest.mark.rule("R13", "W11")
def test_two_closes_share_the_force_and_its_failure() -> None:
    config = ClientConfig(force_timeout_ms=700)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk:
            ledger = await bk.create_ledger(deferred_sync=True)
            await ledger.append(b"x")
            cluster["b3"].silent_on_force = True
            closes: Any = await asyncio.gather(ledger.close(), ledger.close(), return_exceptions=True)
            assert [type(end) for end in closes] == [RequestTimedOutError] * 2
            assert not (await bk.metadata(ledger.id)).is_closed
            with pytest.raises(RequestTimedOutError):
                await ledger.append(b"late")
            await ledger.close(force=False)
            assert (await bk.metadata(ledger.id)).last_entry == -1

    ScriptedCluster().run(story)


@pytest.mark.rule("W12", "W11")
def test_a_bookie_that_is_slow_holds_up_the_writer_and_does_not_fail() -> None:
    config = ClientConfig(pending_bytes_max=10_000, bookie_trail_bytes_max=10_000, add_timeout_ms=4_000)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk, await bk.create_ledger(deferred_sync=True) as ledger:
            cluster["b2"].refuse_adds = Status.TOO_MANY_REQUESTS

            async def fill(handle: WriteHandle) -> None:
                for _ in range(300):
                    await handle.append(b"x" * 100)

            filling = asyncio.ensure_future(fill(ledger))
            await asyncio.sleep(2)
            held_up_at = ledger._writer.progress.last_acknowledged
            await asyncio.sleep(1)
            assert not filling.done()
            assert held_up_at == ledger._writer.progress.last_acknowledged < 150
            cluster["b2"].refuse_adds = None
            await asyncio.wait_for(filling, 10)
            assert await ledger.force() == 299
            assert sorted(cluster["b2"].entries[ledger.id]) == list(range(300))

    ScriptedCluster().run(story)


def test_on_a_plain_ledger_force_waits_for_the_slowest_bookie() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(CONFIG) as bk:
            ledger = await bk.create_ledger()
            assert await ledger.force() == -1
            assert await ledger.append(b"x") == 0
            assert await ledger.force() == 0
            assert forces(cluster) == 3
            await ledger.close()
            with pytest.raises(LedgerClosedError):
                await ledger.force()

    ScriptedCluster().run(story)


@pytest.mark.rule("W2", "W11")
def test_advanced_and_deferred_go_together() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger(advanced=True, deferred_sync=True) as ledger:
                one = ledger.append_at_nowait(1, b"one")
                assert await ledger.force() == -1
                assert await ledger.append_at(0, b"zero") == 0
                assert await one == 1
                assert ledger.last_add_confirmed == -1
                assert await ledger.force() == 1
            assert (await bk.metadata(ledger.id)).last_entry == 1

    ScriptedCluster().run(story)
