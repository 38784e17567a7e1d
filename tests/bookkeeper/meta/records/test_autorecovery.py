"""The nodes of autorecovery, as Apache BookKeeper's processes read and write them."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import ConfigError, MetadataFormatError
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes, ClusterCheck, decode_vote
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.stores.memory import MemoryCluster, MemoryStore

ROOT = "/ledgers/underreplication"


def of(store: MemoryStore) -> AutorecoveryNodes:
    return AutorecoveryNodes(store, Paths("/ledgers"))


async def test_a_new_cluster_gets_the_nodes_that_javas_processes_look_for() -> None:
    store = MemoryCluster().connect()
    await of(store).prepare(30)
    assert (await store.get(f"{ROOT}/LAYOUT")).value == b'type: "BASIC"\nversion: 1\n'
    assert (await store.get(f"{ROOT}/lostBookieRecoveryDelay")).value == b"30"
    for name in ("ledgers", "locks", "auditorelection"):
        assert await store.exists(f"{ROOT}/{name}") == 0
    await of(store).prepare(60)
    assert await of(store).delay_s() == 30, "what an operator has set stays"


async def test_it_is_enabled_unless_the_node_disable_exists() -> None:
    store = MemoryCluster().connect()
    records = of(store)
    assert await records.is_enabled()
    await records.disable()
    await records.disable()
    assert await store.exists(f"{ROOT}/disable") == 0 and not await records.is_enabled()
    await records.enable()
    await records.enable()
    assert await records.is_enabled()


async def test_every_write_of_the_delay_counts_also_of_the_same_value() -> None:
    records = of(MemoryCluster().connect())
    assert await records.delay_s() is None and await records.delay_version() is None
    await records.write_delay(5)
    first = await records.delay_version()
    await records.write_delay(5)
    assert await records.delay_s() == 5 and await records.delay_version() != first
    with pytest.raises(ConfigError, match="-1"):
        await records.write_delay(-1)


async def test_a_delay_that_is_no_number_is_said_to_be_none() -> None:
    store = MemoryCluster().connect()
    await store.create(f"{ROOT}/lostBookieRecoveryDelay", b"soon", parents=True)
    with pytest.raises(MetadataFormatError, match="no number of seconds"):
        await of(store).delay_s()


@pytest.mark.parametrize("check", ClusterCheck)
async def test_the_time_of_a_check_is_kept_as_java_keeps_it(check: ClusterCheck) -> None:
    store = MemoryCluster().connect()
    records = of(store)
    assert await records.last_check(check) is None
    await records.record_check(check, 1700000000000)
    assert (await store.get(f"{ROOT}/{check.value}")).value == b"\x08\x80\xd0\x95\xff\xbc\x31"
    await records.record_check(check, 1700000000001)
    assert await records.last_check(check) == 1700000000001
    await records.request_check(check)
    await records.request_check(check)
    assert await records.last_check(check) is None
    await store.create(f"{ROOT}/{check.value}", b"\xff")
    with pytest.raises(MetadataFormatError, match="cannot be read"):
        await records.last_check(check)


async def test_the_first_vote_is_the_auditors_and_the_next_takes_over_when_its_session_ends() -> None:
    cluster = MemoryCluster()
    one, two = cluster.connect(), cluster.connect()
    first = await of(one).cast("b1:3181")
    second = await of(two).cast("b2:3181")
    assert (await one.get(first.path)).value == b'bookieId: "b1:3181"\n'
    assert first.path == f"{ROOT}/auditorelection/V_0000000000"
    assert await of(two).votes() == [first, second] and await of(two).auditor() == "b1:3181"
    await of(one).announce("b1:3181")
    assert decode_vote((await two.get(f"{ROOT}/auditorelection")).value) == "b1:3181"
    await one.close()
    assert await of(two).votes() == [second] and await of(two).auditor() == "b2:3181"


async def test_a_session_casts_one_vote_however_often_it_asks() -> None:
    store = MemoryCluster().connect()
    assert await of(store).cast("b1") == await of(store).cast("b1")
    await of(store).withdraw((await of(store).votes())[0])
    assert await of(store).votes() == []


async def test_what_is_no_vote_is_said_to_be_none() -> None:
    with pytest.raises(MetadataFormatError, match="vote"):
        decode_vote(b"bookieId")


async def test_reports_are_beside_the_root_and_end_with_their_session() -> None:
    cluster = MemoryCluster()
    one, two = cluster.connect(), cluster.connect()
    await of(one).publish("host-1", b"{}")
    await of(one).publish("host-1", b"{1}")
    assert await one.exists("/ledgers-py/autorecovery/host-1") is not None
    assert await of(two).reports() == {"host-1": b"{1}"}
    await one.close()
    assert await of(two).reports() == {}
    await of(two).unpublish("host-1")


async def test_whoever_watches_hears_of_the_switch_the_delay_the_votes_and_the_marks() -> None:
    cluster = MemoryCluster()
    records, other = of(cluster.connect()), of(cluster.connect())
    await records.prepare(0)
    heard: list[int] = []
    watches = [*records.watch(lambda: heard.append(1)), records.watch_marks(lambda: heard.append(2))]
    for change in (other.disable(), other.write_delay(0), other.cast("b1")):
        await change
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert 1 in heard
        heard.clear()
    for watch in watches:
        watch.close()
