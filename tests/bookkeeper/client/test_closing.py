"""close(): twice, at once, while bookies fail, while somebody recovers: one result for all who ask (R13)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    MetadataConflictError,
    MetadataUnavailableError,
    NoSuchLedgerError,
    Outcome,
)
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.client.scripted import ScriptedCluster

pytestmark = pytest.mark.rule("R13")


async def all_of(*closes: Any) -> list[type | None]:
    ended = await asyncio.gather(*closes, return_exceptions=True)
    return [None if end is None else type(end) for end in ended]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("shape", [{}, {"deferred_sync": True}, {"advanced": True}], ids=["plain", "deferred", "adv"])
def test_closes_during_a_recovery_and_a_crash_all_end_alike(seed: int, shape: dict[str, Any]) -> None:
    """Several closes, some before and some after; meanwhile a bookie dies and another client recovers the ledger."""

    async def story(cluster: SimCluster) -> None:
        rng = cluster.world.rng
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger: Any = await bk.create_ledger(**shape)
            append = (
                ledger.append_at_nowait if "advanced" in shape else lambda _, payload: ledger.append_nowait(payload)
            )
            for entry_id in range(10):
                await append(entry_id, b"%d" % entry_id)
                if not shape.get("deferred_sync"):
                    cluster.acked(ledger.id, entry_id, b"%d" % entry_id)
            last = append(10, b"10")

            async def close(after_s: float) -> None:
                await asyncio.sleep(after_s)
                await ledger.close()

            async def recover(after_s: float) -> None:
                await asyncio.sleep(after_s)
                await (await other.open_ledger(ledger.id)).close()

            cluster.world.loop.call_later(rng.random() * 0.004, cluster.node("b1").crash)
            closes = [asyncio.ensure_future(close(after * rng.random() * 0.002)) for after in (0, 0, 1, 1, 2)]
            recovering = asyncio.ensure_future(recover(rng.random() * 0.004))
            kinds = await all_of(*closes)
            await recovering
            assert len(set(kinds)) == 1, kinds
            assert await all_of(ledger.close(), ledger.close()) == [kinds[0]] * 2
            stored = await other.metadata(ledger.id)
            assert stored.is_closed
            assert stored.last_entry >= (-1 if shape.get("deferred_sync") and kinds[0] is not None else 9)
            assert ledger.closed
            await asyncio.wait_for(asyncio.gather(last, return_exceptions=True), 1)
        if not cluster.node("b1").alive:
            cluster.node("b1").restart()
        await cluster.wait_until_up()
        await cluster.check_acked()

    SimCluster(seed, bookies=4).run(story)


def test_closes_wait_for_one_another_and_one_that_is_cancelled_takes_nothing_back() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            closes = [asyncio.ensure_future(ledger.close()) for _ in range(3)]
            await asyncio.sleep(0)
            closes[0].cancel()
            assert await all_of(*closes) == [asyncio.CancelledError, None, None]
            assert (await bk.metadata(ledger.id)).last_entry == 0

    ScriptedCluster().run(story)


@pytest.mark.parametrize("seed", range(3))
def test_two_closes_while_a_bookie_fails_wait_for_the_change_of_the_ensemble(seed: int) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            ledgers = ledger._shell.record._ledgers
            write = ledgers.write

            async def slowly(*args: Any, **named: Any) -> Any:
                await asyncio.sleep(0.5)
                return await write(*args, **named)

            ledgers.write = slowly  # type: ignore[method-assign]
            victim = ledger.metadata.last_fragment.ensemble[seed]
            cluster.world.node(victim).crash(power=False)
            pending = ledger.append_nowait(b"pending")
            await asyncio.sleep(0.1)
            assert ledger._writer.is_changing
            assert await all_of(ledger.close(), ledger.close()) == [None, None]
            with pytest.raises(LedgerClosedError):
                await pending
            stored = await bk.metadata(ledger.id)
            assert (stored.is_closed, stored.last_entry, stored.length) == (True, 0, 1)

    ScriptedCluster(bookies=4).run(story)


def test_a_recovery_that_ended_at_the_same_entry_is_no_failure_and_another_end_is_told_to_all() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            same = await bk.create_ledger()
            await same.append(b"x")
            await (await other.open_ledger(same.id)).close()
            assert await all_of(same.close(), same.close()) == [None, None]

            fenced = await bk.create_ledger()
            await fenced.append(b"x")
            await (await other.open_ledger(fenced.id)).close()
            with pytest.raises(LedgerFencedError):
                await fenced.append(b"late")
            assert await all_of(fenced.close(), fenced.close()) == [LedgerFencedError] * 2

            gone = await bk.create_ledger()
            await other.delete_ledger(gone.id, force=True)
            assert await all_of(gone.close(), gone.close()) == [NoSuchLedgerError] * 2

    ScriptedCluster().run(story)


def test_all_who_close_while_the_store_is_away_hear_so_and_may_try_again() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            ledgers = ledger._shell.record._ledgers

            async def away(*args: object, **named: object) -> None:
                raise MetadataUnavailableError("away")

            write, ledgers.write = ledgers.write, away  # type: ignore[method-assign,assignment]
            assert await all_of(ledger.close(), ledger.close(), ledger.close()) == [MetadataUnavailableError] * 3
            ledgers.write = write  # type: ignore[method-assign]
            assert await all_of(ledger.close(), ledger.close()) == [None, None]

    ScriptedCluster().run(story)


def test_a_close_that_loses_a_compare_and_set_looks_again() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            ledgers = ledger._shell.record._ledgers
            write, lost = ledgers.write, list[int]()

            async def loses_once(*args: Any, **named: Any) -> Any:
                if lost:
                    return await write(*args, **named)
                lost.append(1)
                raise MetadataConflictError("somebody was faster")

            ledgers.write = loses_once  # type: ignore[method-assign]
            assert await all_of(ledger.close(), ledger.close()) == [None, None]
            assert lost

    ScriptedCluster().run(story)


@pytest.mark.parametrize("how", ["abandon", "client"])
@pytest.mark.parametrize("waits_for", ["force", "metadata"])
def test_a_close_that_is_let_go_of_ends_at_once_and_says_so(how: str, waits_for: str) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        loop = asyncio.get_running_loop()
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(deferred_sync=waits_for == "force")
            await ledger.append(b"x")
            cluster["b3"].silent_on_force = True
            if waits_for == "metadata":
                cluster.store.suspend(bk.metadata_store.store)  # type: ignore[arg-type]
            close = asyncio.ensure_future(ledger.close())
            await asyncio.sleep(0.1)
            began = loop.time()
            await (ledger.abandon() if how == "abandon" else bk.close())
            for ending in (close, ledger.close(), ledger.close(force=False)):
                with pytest.raises(BookKeeperError) as ended:
                    await ending
                assert ended.value.outcome is Outcome.UNKNOWN
            assert loop.time() - began < 0.2

    ScriptedCluster().run(story)


def test_a_close_that_nobody_waits_for_any_more_leaves_nothing_behind() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            cluster.store.begin_outage()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ledger.close(), 0.5)
            cluster.store.end_outage()
            await asyncio.sleep(5)
            assert (await bk.metadata(ledger.id)).is_closed
            assert not bk._handles and not ledger._shell._channels and not bk.services.pool._users
            await ledger.close()

    ScriptedCluster().run(story)
