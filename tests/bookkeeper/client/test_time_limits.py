"""Every wait of a client ends: each limit of ClientConfig, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import (
    AddTimeoutError,
    BookieError,
    ConfigError,
    MetadataUnavailableError,
    RecoveryInconclusiveError,
    RequestTimedOutError,
)
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedCluster, written

pytestmark = pytest.mark.rule("V1")


@asynccontextmanager
async def lasting(at_least_s: float, below_s: float) -> AsyncIterator[None]:
    """What stands inside takes so long, in virtual time."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    yield
    assert at_least_s <= loop.time() - began < below_s


def test_add_timeout_ms_bounds_an_append_without_a_quorum() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(add_timeout_ms=1_300)) as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            for bookie in cluster.bookies:
                bookie.silent = True
            async with lasting(1.3, 1.5):
                with pytest.raises(AddTimeoutError, match="within 1300 ms"):
                    await ledger.append(b"unknown")

    ScriptedCluster().run(story)


def test_bookie_stall_ms_bounds_what_one_bookie_may_take_for_an_add() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(bookie_stall_ms=200)) as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"x")
            cluster[ledger.metadata.last_fragment.ensemble[0]].silent = True
            async with lasting(0.2, 0.5):
                while len(ledger.metadata.fragments) == 1:
                    await ledger.append(b"y")
                    await asyncio.sleep(0.01)

    ScriptedCluster(bookies=4).run(story)


def test_force_timeout_ms_bounds_a_force_also_one_that_waits_for_another() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        config = ClientConfig(force_timeout_ms=1_000)
        async with cluster.connect(config) as bk, await bk.create_ledger(deferred_sync=True) as ledger:
            await ledger.append(b"x")
            cluster["b2"].silent_on_force = True

            async def late() -> None:
                await asyncio.sleep(0.5)
                await ledger.append(b"y")
                async with lasting(1.0, 1.2):
                    with pytest.raises(RequestTimedOutError):
                        await ledger.force()

            waiting = asyncio.ensure_future(late())
            async with lasting(1.0, 1.2):
                with pytest.raises(RequestTimedOutError, match="1000 ms"):
                    await ledger.force()
            await waiting
            cluster["b2"].silent_on_force = False

    ScriptedCluster().run(story)


def test_request_timeout_ms_bounds_a_read() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 10)
        config = ClientConfig(request_timeout_ms=700, long_poll_ms=500, speculative_read_ms=100)
        async with cluster.connect(config) as bk, await bk.open_ledger(ledger_id) as reader:
            for bookie in cluster.bookies:
                bookie.silent = True
            async with lasting(0.7, 2.0):
                with pytest.raises(BookieError):
                    await reader.read_entry(3)

    ScriptedCluster().run(story)


@pytest.mark.parametrize("recovery", [True, False])
def test_open_timeout_ms_bounds_opening_whatever_else_has_longer_limits(recovery: bool) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        config = ClientConfig(open_timeout_ms=2_500, request_timeout_ms=60_000)
        async with cluster.connect(config) as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            await ledger.abandon()
            for bookie in cluster.bookies:
                bookie.silent = True
            async with lasting(2.5, 2.7):
                with pytest.raises(
                    RequestTimedOutError, match=r"not opened within 2500 ms \(open_timeout_ms\)"
                ) as late:
                    await bk.open_ledger(ledger.id, recovery=recovery)
            assert late.value.retryable
            assert ("may be fenced" in str(late.value)) == recovery
            for bookie in cluster.bookies:
                bookie.silent = False
            async with await bk.open_ledger(ledger.id) as reader:
                assert await reader.read_entry(0) == b"x"

    ScriptedCluster().run(story)


def test_recovery_attempts_and_their_pauses_bound_a_recovery_that_finds_too_few_bookies() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        config = ClientConfig(recovery_attempts=3, recovery_retry_ms=400)
        async with cluster.connect(config) as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            await ledger.abandon()
            for bookie in cluster.bookies:
                bookie.refuse_reads = Status.IO_ERROR
            async with lasting(0.8, 30):
                with pytest.raises(RecoveryInconclusiveError):
                    await bk.open_ledger(ledger.id)

    ScriptedCluster().run(story)


def test_metadata_timeout_ms_bounds_a_close_while_the_store_is_away() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(metadata_timeout_ms=900)) as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            ledgers = ledger._shell.record._ledgers

            async def away(*args: object, **named: object) -> Awaitable[None]:
                raise MetadataUnavailableError("away")

            write, ledgers.write = ledgers.write, away  # type: ignore[method-assign,assignment]
            async with lasting(0.9, 1.2):
                with pytest.raises(MetadataUnavailableError, match=r"call close\(\) again"):
                    await ledger.close()
            ledgers.write = write  # type: ignore[method-assign]
            await ledger.close()
            assert (await bk.metadata(ledger.id)).last_entry == 0

    ScriptedCluster().run(story)


@pytest.mark.parametrize("name", ["add_timeout_ms", "force_timeout_ms", "request_timeout_ms", "open_timeout_ms"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        ClientConfig.from_mapping({name: 0})
