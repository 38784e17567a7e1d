"""Ledgers with a chain's tags that nothing needs: found by age, and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence

import pytest

from bookkeeper import BookKeeper
from bookkeeper.chains.orphans import OrphanLedger, delete_orphans, find_orphans
from bookkeeper.ids import LedgerId
from bookkeeper.testing.cluster import SimCluster

TAGS = {"application": b"test", "chain": b"one"}


async def closed_ledger(client: BookKeeper, tags: dict[str, bytes]) -> int:
    async with await client.create_ledger(custom_metadata=tags) as ledger:
        await ledger.append(b"12345")
    return ledger.id


def test_what_is_tagged_old_and_not_needed_is_an_orphan() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            orphan = await closed_ledger(client, TAGS | {"first": b"1"})
            needed = await closed_ledger(client, TAGS)
            others = [await closed_ledger(client, {**TAGS, "chain": b"two"}), await closed_ledger(client, {})]
            await asyncio.sleep(100)
            young = await closed_ledger(client, TAGS)
            asked: list[list[int]] = []

            async def is_needed(found: Sequence[OrphanLedger]) -> Collection[int]:
                asked.append([each.ledger for each in found])
                return {needed}

            now = cluster.client.seams.clock.wall_ms()
            found = await find_orphans(client, TAGS, is_needed, now, older_than_s=60)
            assert [(each.ledger, each.length, each.tags["first"]) for each in found] == [(orphan, 5, b"1")]
            created_ms = (await client.metadata_store.ledgers.read(LedgerId(orphan))).value.ctime_ms
            assert created_ms is not None and found[0].age_s == (now - created_ms) / 1000
            assert asked == [[orphan, needed]]
            await delete_orphans(client, [*found, *found])
            left = {ledger_id async for ledger_id in client.list_ledgers()}
            assert left == {needed, young, *others}
            assert await find_orphans(client, {"chain": b"none"}, is_needed, now, older_than_s=0) == ()

    SimCluster(seed=1).run(story)


def test_a_ledger_that_goes_while_they_are_looked_for_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            orphan, gone = [await closed_ledger(client, TAGS) for _ in range(2)]
            await client.delete_ledger(gone)

            async def listed(client: BookKeeper) -> AsyncIterator[int]:
                for ledger in (orphan, gone):
                    yield ledger

            async def nothing(found: Sequence[OrphanLedger]) -> Collection[int]:
                return ()

            monkeypatch.setattr(BookKeeper, "list_ledgers", listed)
            now = cluster.client.seams.clock.wall_ms()
            found = await find_orphans(client, TAGS, nothing, now, older_than_s=0)
            assert [each.ledger for each in found] == [orphan]

    SimCluster(seed=1).run(story)
