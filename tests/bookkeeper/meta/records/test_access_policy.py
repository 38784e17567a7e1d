"""The access policy's records: changed by compare-and-set, with a note of who did it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bookkeeper.access import Amount, Grant, Mode, Policy, PolicyChange, Resource, Right, Subject, Usage
from bookkeeper.errors import ConfigError, MetadataFormatError, MetadataRolledBackError
from bookkeeper.meta.records.access_policy import AccessPolicies
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore
from bookkeeper.meta.stores.memory import MemoryCluster

NOTE = PolicyChange(5, "eve on host", "grant")


def _granting(who: str) -> Grant:
    return Grant(Subject.parse(who), frozenset({Right.READ}), Resource.parse("streams:app"))


async def test_the_policy_lies_beside_javas_root_and_begins_with_the_first_change(store: MetadataStore) -> None:
    policies = AccessPolicies(store, Paths())
    assert policies.path == "/ledgers-py/access/policy"
    assert await policies.read() is None
    made = await policies.change(lambda policy: policy.with_grant(_granting("etl")), NOTE)
    found = await policies.read()
    assert found is not None and found.value == made and made.changes == (NOTE,) and made.mode is Mode.OFF
    changed = await policies.change(lambda policy: replace(policy, mode=Mode.ENFORCE), replace(NOTE, at_ms=6))
    assert [each.at_ms for each in changed.changes] == [5, 6] and changed.grants == made.grants


async def test_what_changes_nothing_is_not_written(store: MetadataStore) -> None:
    policies = AccessPolicies(store, Paths())
    assert await policies.change(lambda policy: policy, NOTE) == Policy()
    assert await policies.read() is None


@pytest.mark.rule("M1")
async def test_changes_of_many_at_once_are_all_there() -> None:
    cluster = MemoryCluster()
    many = [AccessPolicies(cluster.connect(), Paths()) for _ in range(5)]

    async def grant(policies: AccessPolicies, who: str) -> None:
        await policies.change(lambda policy: policy.with_grant(_granting(who)), NOTE)

    await asyncio.gather(*(grant(policies, f"p{number}") for number, policies in enumerate(many)))
    found = await many[0].read()
    assert found is not None and len(found.value.changes) == 5
    assert sorted(str(each.who) for each in found.value.grants) == ["p0", "p1", "p2", "p3", "p4"]


async def test_a_policy_that_cannot_be_read_is_not_written_over_unless_that_is_asked_for() -> None:
    store = MemoryCluster().connect()
    policies = AccessPolicies(store, Paths())
    await store.create(policies.path, b'{"format":99}', parents=True)
    with pytest.raises(MetadataFormatError, match="format 99"):
        await policies.change(lambda policy: replace(policy, mode=Mode.OFF), NOTE)
    assert (await store.get(policies.path)).value == b'{"format":99}'
    assert (await policies.change(lambda policy: policy, NOTE, over_damaged=True)).mode is Mode.OFF
    found = await policies.read()
    assert found is not None and found.value == Policy(changes=(NOTE,))


async def test_a_change_that_is_refused_writes_nothing() -> None:
    policies = AccessPolicies(MemoryCluster().connect(), Paths())

    def refuse(policy: Policy) -> Policy:
        raise ConfigError("no")

    with pytest.raises(ConfigError):
        await policies.change(refuse, NOTE)
    assert await policies.read() is None


@pytest.mark.rule("M10")
async def test_a_store_that_shows_an_older_state_is_not_believed() -> None:
    cluster = MemoryCluster()
    policies, other = (AccessPolicies(cluster.connect(), Paths()) for _ in range(2))
    await policies.change(lambda policy: policy.with_grant(_granting("etl")), NOTE)
    backup = cluster.snapshot()
    await policies.change(lambda policy: replace(policy, grants=()), NOTE)
    cluster.restore(backup)
    await asyncio.sleep(0)
    with pytest.raises(MetadataRolledBackError):
        await policies.read()
    assert await other.read() is not None, "who has not seen the newer state cannot know"


async def test_who_watches_hears_of_a_change() -> None:
    cluster = MemoryCluster()
    one, two = (AccessPolicies(cluster.connect(), Paths()) for _ in range(2))
    heard, counted = asyncio.Event(), asyncio.Event()
    watches = [one.watch(heard.set), one.watch_usage(counted.set)]
    await two.change(lambda policy: policy.with_grant(_granting("etl")), NOTE)
    await asyncio.wait_for(heard.wait(), 5)
    await two.write_usage(Usage(1))
    await asyncio.wait_for(counted.wait(), 5)
    for watch in watches:
        watch.close()


async def test_a_count_is_replaced_by_the_next_one(store: MetadataStore) -> None:
    policies = AccessPolicies(store, Paths())
    assert await policies.read_usage() is None
    for number in (1, 2):
        await policies.write_usage(Usage(number, {"red": Amount(number, 1)}))
    assert await policies.read_usage() == Usage(2, {"red": Amount(2, 1)})
