"""The simulated cluster keeps its own promises: it repeats itself, and it notices what must not happen."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bookkeeper.auth.config import AuthConfig
from bookkeeper.errors import BookKeeperError, InvariantError
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import LedgerState
from bookkeeper.meta.records import ledger_format
from bookkeeper.net.tls import ServerTls, TlsConfig
from bookkeeper.testing.cluster import CLIENT, SimCluster, WitnessedStore


def trace_of(seed: int) -> str:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            for i in range(30):
                await ledger.append(b"%d" % i)
                if i == 10:
                    cluster.node("b2").crash()
                if i == 20:
                    cluster.node("b2").restart()
            await cluster.wait_until_up()

    cluster = SimCluster(seed)
    cluster.run(story)
    return cluster.world.trace.digest


def test_the_same_seed_gives_the_same_trace_and_another_one_another() -> None:
    assert trace_of(3) == trace_of(3) != trace_of(4)


@pytest.mark.rule("M2")
def test_an_illegal_change_of_metadata_is_noticed_where_it_happens() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger() as ledger:
                await ledger.append(b"x")
            store, path = bk.metadata_store.store, next(iter(cluster.store.seen))
            found = await store.get(path)
            closed = ledger_format.decode(found.value)
            reopened = replace(closed, state=LedgerState.OPEN, last_entry=type(closed.last_entry)(-1), length=0)
            with pytest.raises(InvariantError, match=r"M2 of docs/rules\.md does not hold"):
                await store.set(path, ledger_format.encode(reopened), found.version)

    SimCluster().run(story)


@pytest.mark.rule("L1", "R11")
def test_an_acknowledged_entry_that_is_gone_or_another_is_noticed() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"x")
        cluster.acked(ledger.id, 0, b"y")
        with pytest.raises(InvariantError, match="L1"):
            await cluster.check_acked()
        cluster._acked.clear()
        cluster.acked(LedgerId(ledger.id), 1, b"x")
        with pytest.raises(InvariantError, match="R11"):
            await cluster.check_acked()

    SimCluster().run(story)


def test_a_session_of_a_crashed_bookie_ends_when_it_times_out_and_not_before() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            cluster.node("b1").crash()
            await asyncio.sleep(1)
            assert len(await bk.metadata_store.bookies.writable()) == 3
            await asyncio.sleep(2)
            assert len(await bk.metadata_store.bookies.writable()) == 2
        assert isinstance(cluster.store, WitnessedStore)

    SimCluster().run(story)


@pytest.mark.rule("X2", "X10")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_a_cluster_that_encrypts_and_asks_who_is_there_in_bad_weather(seed: int, protocol: str) -> None:
    """Encrypted in name only: what is simulated is the order of START_TLS, AUTH and requests, in pieces and with
    resets, and bookies that come back."""
    providers = "tests.bookkeeper.auth.providers"
    config = replace(
        CLIENT, protocol=protocol, tls=TlsConfig(ca="a file"), auth=AuthConfig(provider=f"{providers}:client")
    )

    async def story(cluster: SimCluster) -> None:
        weather = cluster.world.network.weather
        weather.split_share, weather.reset_share = 0.9, 0.002
        async with cluster.connect(config) as bk:
            ledger = await bk.create_ledger()
            for number in range(100):
                payload = b"%d" % number
                cluster.acked(ledger.id, await ledger.append(payload), payload)
                if number == 50:
                    cluster.node("b2").crash()
                    cluster.node("b2").restart()
        weather.reset_share = 0.0
        await cluster.wait_until_up()
        await cluster.check_acked(config)
        with pytest.raises(BookKeeperError):
            await cluster.check_acked()  # a client that says neither START_TLS nor who it is

    asks = AuthConfig(provider=f"{providers}:server")
    SimCluster(seed, tls=ServerTls(cert="a file"), auth=asks).run(story)
