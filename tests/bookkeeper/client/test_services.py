"""What the handles of one client share."""

from __future__ import annotations

from tests.bookkeeper.client.scripted import ScriptedCluster


def test_handles_of_one_client_share_its_parts_and_count_together() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            for _ in range(2):
                async with await bk.create_ledger() as ledger:
                    await ledger.append_many([b"x"] * 5)
            counters = {name: metric for name, _, _, metric in bk.metrics}
            assert counters["bookkeeper_client_entries_confirmed"].value == 10  # type: ignore[union-attr]
            assert len({id(bk.services.pool), id(bk.services.pool)}) == 1
            assert all(len(bookie.connections) == 1 for bookie in cluster.bookies)

    ScriptedCluster().run(story)
