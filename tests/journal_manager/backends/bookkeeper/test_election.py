"""The lease of a journal's active replica, over the real lease and the real store in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.leases.lease import LeaseLostError, StoreLease
from bookkeeper.leases.process_location import NOWHERE
from journal_manager.backends.bookkeeper.backend import LeaseElection
from journal_manager.backends.bookkeeper.shared_client import SharedClient
from journal_manager.errors import ElectionLostError
from journal_manager.journals.election import Election, open_election
from tests.journal_manager.backends.bookkeeper.fake import Client, Cluster
from tests.spark_wal.webhdfs.virtual import LoopClock, in_virtual_time


def client_of(cluster: Cluster) -> Client:
    client = cluster.client()
    client.services.seams.clock = LoopClock()
    return client


async def candidate(cluster: Cluster, name: str, journal: str = "bk:a/b", **options: Any) -> Election:
    return await open_election(journal, name=name, client=client_of(cluster), here=NOWHERE, **options)


def held(election: Election) -> bool:
    return election.is_held


async def elected(election: Election) -> Election:
    await election.campaign()
    await election.wait_until_held()
    assert held(election)
    return election


@in_virtual_time
async def test_a_second_replica_waits_and_knows_the_first_by_name() -> None:
    cluster = Cluster()
    one = await elected(await candidate(cluster, "one"))
    two = await candidate(cluster, "two")
    campaign = asyncio.create_task(two.campaign())
    await asyncio.sleep(30)
    assert (held(one), campaign.done(), two.holder) == (True, False, "one")
    await elected(await candidate(cluster, "other journal", "bk:a"))
    await one.close()
    await one.close()
    await campaign
    await two.wait_until_held()
    assert (held(one), held(two)) == (False, True)
    await two.close()


@in_virtual_time
async def test_a_replica_that_vanishes_is_followed_and_two_never_hold_it_at_once() -> None:
    cluster = Cluster()
    client = client_of(cluster)
    one = await elected(await open_election("bk:a", name="one", client=client, here=NOWHERE))
    two = await candidate(cluster, "two", "bk:a")
    cluster.metadata.suspend(client.metadata_store.store._store)
    campaign = asyncio.create_task(elected(two))
    both = False
    for _ in range(400):
        both = both or (held(one) and held(two))
        await asyncio.sleep(0.01)
    assert campaign.done() and not both and held(two) and not held(one)
    cluster.metadata.resume(client.metadata_store.store._store)
    async with asyncio.timeout(20):
        await one.lost()
    await two.close()
    await one.close()


@in_virtual_time
async def test_a_store_that_is_away_for_five_seconds_changes_nobody() -> None:
    cluster = Cluster()
    one, two = await elected(await candidate(cluster, "one")), await candidate(cluster, "two")
    campaign, lost = asyncio.create_task(two.campaign()), asyncio.create_task(one.lost())
    await asyncio.sleep(5)
    cluster.metadata.begin_outage()
    await asyncio.sleep(5)
    assert not held(one)
    cluster.metadata.end_outage()
    await asyncio.sleep(5)
    assert held(one) and not campaign.done() and not lost.done()
    for task in (campaign, lost):
        task.cancel()
    await two.close()
    await one.close()


@in_virtual_time
async def test_who_lost_the_race_is_told() -> None:
    class Lost(StoreLease):
        async def wait_until_held(self) -> None:
            raise LeaseLostError("lost")

    client = client_of(Cluster())
    lease = Lost(client.metadata_store.store, "/x", LoopClock(), owner="a", address="a")
    with pytest.raises(ElectionLostError, match="elected meanwhile"):
        await LeaseElection(SharedClient(client), lease).wait_until_held()  # type: ignore[arg-type]
    await lease.release()
