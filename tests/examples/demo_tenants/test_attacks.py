"""The attacks work where nobody asks for permission: else the demo would prove nothing."""

from __future__ import annotations

import asyncio

from bookkeeper.testing.cluster import SimCluster
from examples.demo_tenants.attacks import RUN, admitted_at_most, end_writer, flood, forge, read_all
from examples.demo_tenants.tenants import TenantProgram


def test_without_permissions_all_of_them_get_what_they_want() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as reds, cluster.connect() as thief:
            red = TenantProgram(reds, "red", 20)
            running = asyncio.create_task(red.run())
            await asyncio.sleep(1)
            assert red.open is not None and red.acknowledged > 5
            assert await read_all(thief, list(red.written)) > 5
            made = await red.ledger()
            assert await forge(thief, made.id, 0) == 6, "as a writer and as a recovery, on three bookies"
            assert await forge(thief, red.open, len(red.written[red.open]) + 1) >= 3
            assert await end_writer(thief, red.open) == 3
            await asyncio.wait_for(running, 60)
            assert red.ended
            assert len(await red.read_back()) >= 1, "what was forged stands in red's ledgers"

    SimCluster().run(story)


def test_a_flood_is_as_fast_as_it_goes_and_everything_counts() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            blue = TenantProgram(bk, "blue", 20)
            done, took = await flood(blue, 0.5)
            assert done > 2 * admitted_at_most(100, took), "else the verdict could not tell"
            assert done >= 5 * RUN and took >= 0.5 and blue.acknowledged == done
            assert await blue.read_back() == []

    SimCluster().run(story)


def test_a_rate_holds_on_each_bookie_and_an_entry_needs_two_of_three() -> None:
    assert admitted_at_most(100, 2.0) == (100 + 200 + RUN) * 3 // 2
    assert admitted_at_most(100, 2.0, ensemble=1, ack_quorum=1) == 100 + 200 + RUN
