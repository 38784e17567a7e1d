"""Autorecovery in somebody else's process: it uses that process's session, and leaves it open."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bookkeeper import BookKeeper
from bookkeeper.autorecovery.inside import InsideAutorecovery
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes
from bookkeeper.testing.cluster import SimCluster


def test_it_ends_with_its_vote_and_report_and_the_session_goes_on() -> None:
    async def story(cluster: SimCluster) -> None:
        seams = cluster.client.seams
        metadata = await Metadata.over(cluster.store.connect(), seams)
        records = AutorecoveryNodes(metadata.store, metadata.paths)
        inside = await InsideAutorecovery.of_cluster("inside", metadata, seams)
        await asyncio.sleep(10)
        assert await records.auditor() == "inside" and list(await records.reports()) == ["inside"]
        await inside.stop()
        await inside.stop()
        assert await records.votes() == [] and await records.reports() == {}
        await metadata.close()

    SimCluster().run(story)


async def test_an_embedded_cluster_repairs_itself(tmp_path: Path) -> None:
    async with BookKeeper.connect(f"embedded://{tmp_path}/bk?bookies=3") as bk:
        records = AutorecoveryNodes(bk.metadata_store.store, bk.metadata_store.paths)
        async with asyncio.timeout(30):
            while await records.auditor() != "embedded":  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
