"""Counting what tenants have, again and again, by the auditor's process."""

from __future__ import annotations

import asyncio
import logging

import pytest

from bookkeeper.access import Amount, Mode, Policy, PolicyChange, PrincipalQuota, Quota, Resource, Subject, Tenant
from bookkeeper.access.ownership import owner_tag
from bookkeeper.autorecovery.service import COUNT_S, UsageKeeper, needs_count
from bookkeeper.testing.cluster import SimCluster

NOTE = PolicyChange(1, "eve", "x")
RED = Tenant("red", (), (Resource.parse("streams:red"),), Quota(bytes_kept=1000))


@pytest.mark.parametrize(
    ("policy", "needed"),
    [
        (Policy(Mode.ENFORCE, tenants=(RED,)), True),
        (Policy(Mode.OBSERVE, quotas=(PrincipalQuota(Subject.parse("anyone"), Quota(ledgers=5)),)), True),
        (Policy(Mode.OFF, tenants=(RED,)), False),
        (Policy(Mode.ENFORCE, quotas=(PrincipalQuota(Subject.parse("anyone"), Quota(adds_per_s=5)),)), False),
        (Policy(Mode.ENFORCE), False),
    ],
)
def test_it_counts_where_a_quota_needs_it(policy: Policy, needed: bool) -> None:
    assert needs_count(policy) is needed


def test_the_elected_one_counts_every_minute_and_goes_on_after_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            access, elected = bk.metadata_store.access, False
            await access.change(lambda policy: Policy(Mode.OBSERVE, tenants=(RED,)), NOTE)
            keeper = UsageKeeper(bk, bk.services.seams.clock, lambda: elected)
            running = asyncio.create_task(keeper.run())
            await asyncio.sleep(COUNT_S * 2)
            assert await access.read_usage() is None, "another process is the auditor"
            elected = True
            await asyncio.sleep(COUNT_S + 1)
            first = await access.read_usage()
            assert first is not None and first.tenants == {"red": Amount()}
            async with await bk.create_ledger(custom_metadata=owner_tag(Resource.parse("streams:red"))) as ledger:
                await ledger.append(b"x" * 10)
            await asyncio.sleep(COUNT_S + 1)
            second = await access.read_usage()
            assert second is not None and second.tenants == {"red": Amount(30, 1)}
            assert second.counted_ms > first.counted_ms
            cluster.store.begin_outage()
            await asyncio.sleep(COUNT_S * 3)
            cluster.store.end_outage()
            await asyncio.sleep(COUNT_S * 2)
            third = await access.read_usage()
            assert third is not None and third.counted_ms > second.counted_ms
            running.cancel()

    with caplog.at_level(logging.WARNING, "bookkeeper.autorecovery.service"):
        SimCluster().run(story)
    assert len([each for each in caplog.records if "could not be counted" in each.getMessage()]) == 1


def test_without_a_quota_nothing_is_counted() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            keeper = UsageKeeper(bk, bk.services.seams.clock, lambda: True)
            assert not await keeper.count()
            await bk.metadata_store.access.change(lambda policy: Policy(Mode.ENFORCE), NOTE)
            assert not await keeper.count() and await bk.metadata_store.access.read_usage() is None

    SimCluster().run(story)
