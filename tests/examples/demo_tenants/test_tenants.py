"""A tenant's program."""

from __future__ import annotations

import asyncio

from bookkeeper.access import Resource
from bookkeeper.access.ownership import owner_in
from bookkeeper.testing.cluster import SimCluster
from examples.demo_tenants.tenants import PER_LEDGER, TenantProgram
from tests.bookkeeper.replication.clusters import until


def test_it_writes_ledger_after_ledger_in_its_tenants_name_and_reads_them_back() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            red = TenantProgram(bk, "red", 100)
            running = asyncio.create_task(red.run())
            await until(lambda: red.acknowledged >= PER_LEDGER + 10)
            red.stop()
            await running
            assert len(red.written) == 2 and red.ended == "" and red.open is None
            for ledger in red.written:
                assert owner_in((await bk.metadata(ledger)).custom) == Resource.parse("ledgers:red")
            assert await red.read_back() == []
            first = next(iter(red.written))
            red.written[first][0] = b"red other"
            assert await red.read_back() == [f"ledger {first} of red has other entries than were written"]
            await bk.delete_ledger(first)
            assert (await red.read_back())[0].startswith(f"ledger {first} of red cannot be read: ")

    SimCluster().run(story)
