"""What tenants have, in a simulated cluster: it falls when it should, and what still counts is named."""

from __future__ import annotations

import asyncio

from bookkeeper.access import Amount, Policy, Resource, Tenant
from bookkeeper.access.ownership import owner_tag
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.ids import LedgerId
from bookkeeper.replication.inspection.usage import UsageCounter
from bookkeeper.testing.cluster import SimCluster

RED, BOB = Resource.parse("streams:red/x"), Resource.parse("ledgers:bob")
POLICY = Policy(tenants=(Tenant("red", (), (Resource.parse("streams:red"),)),))
COPIES = 2


async def _ledger(bk: BookKeeper, owner: Resource | None, size: int, *, close: bool = True) -> WriteHandle:
    tags = owner_tag(owner) if owner is not None else None
    ledger = await bk.create_ledger(
        ensemble=3, write_quorum=COPIES, ack_quorum=COPIES, password=b"pw", custom_metadata=tags
    )
    await ledger.append(b"x" * size)
    if close:
        await ledger.close()
    return ledger


async def _usage(counter: UsageCounter) -> tuple[Amount, dict[str, Amount]]:
    found = (await counter.count(POLICY, 5)).usage
    return found.tenants["red"], dict(found.owners)


def test_closed_and_open_ledgers_count_with_all_their_copies_for_their_owner() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            counter = UsageCounter(bk)
            await _ledger(bk, RED, 100)
            still_open = await _ledger(bk, RED, 30, close=False)
            await _ledger(bk, BOB, 7)
            await _ledger(bk, None, 1000)
            await asyncio.sleep(1)
            assert await _usage(counter) == (Amount(130 * COPIES, 2), {"bob": Amount(7 * COPIES, 1)})
            await still_open.append(b"x" * 20)
            await still_open.append(b"")
            await asyncio.sleep(1)
            assert (await _usage(counter))[0] == Amount(150 * COPIES, 2)
            await still_open.close()

    SimCluster().run(story)


def test_what_is_deleted_counts_until_its_grace_is_over_and_is_named_until_then() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            counter = UsageCounter(bk)
            first, second = await _ledger(bk, RED, 100), await _ledger(bk, RED, 10)
            await bk.delete_ledger(first.id, grace_s=100)
            await bk.delete_ledger(second.id, grace_s=0)
            found = await counter.count(POLICY, 5)
            assert found.usage.tenants["red"] == Amount(100 * COPIES, 1)
            [kept] = found.deleted
            assert (kept.owner, kept.tenant, kept.ledgers, kept.bytes_kept) == (RED, "red", 1, 100 * COPIES)
            assert kept.until_ms > 0 and await counter.deleted(POLICY) == [kept]
            await asyncio.sleep(101)
            assert await _usage(counter) == (Amount(), {})
            assert await counter.deleted(POLICY) == []

    SimCluster().run(story)


def test_the_length_that_was_known_counts_on_while_no_bookie_answers() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            counter = UsageCounter(bk)
            await _ledger(bk, RED, 100, close=False)
            await asyncio.sleep(1)
            before = await _usage(counter)
            assert before[0] == Amount(100 * COPIES, 1)
            for name in ("b1", "b2", "b3"):
                cluster.node(name).crash()
            found = await counter.count(POLICY, 6)
            assert found.open_unknown == 1 and found.usage.tenants["red"] == before[0]
            for name in ("b1", "b2", "b3"):
                cluster.node(name).restart()

    SimCluster().run(story)


def test_handed_over_and_claimed_ledgers_count_for_whose_they_are() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            counter = UsageCounter(bk)
            owners = bk.metadata_store.ledger_owners
            given, claimed = await _ledger(bk, RED, 100), await _ledger(bk, None, 10)
            await owners.hand_over([LedgerId(given.id)], BOB)
            await owners.claim(LedgerId(claimed.id), RED)
            assert await _usage(counter) == (Amount(10 * COPIES, 1), {"bob": Amount(100 * COPIES, 1)})

    SimCluster().run(story)


def test_metadata_that_cannot_be_read_are_told_and_hide_nothing_else() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            odd, good = await _ledger(bk, RED, 100), await _ledger(bk, RED, 10)
            path = bk.metadata_store.ledgers.path(LedgerId(odd.id))
            await bk.metadata_store.store.set(path, b"rubbish", None)
            found = await UsageCounter(bk).count(POLICY, 5)
            assert found.unreadable == 1 and found.usage.tenants["red"] == Amount(10 * COPIES, 1)
            assert good.id != odd.id

    SimCluster().run(story)
