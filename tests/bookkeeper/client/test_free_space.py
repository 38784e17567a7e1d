"""Bookies with more free disk are chosen more often."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bookkeeper.testing.cluster import CLIENT, SimCluster


@pytest.mark.rule("Q6")
def test_weights_follow_what_bookies_say_and_one_that_is_away_keeps_what_it_said() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect(replace(CLIENT, placement_by_free_space=True, free_space_poll_ms=5_000)) as bk:
            await asyncio.sleep(1)
            weights = bk.services.watcher.weights
            assert weights is not None and set(weights) == {"b1", "b2", "b3"}
            assert all(weight > 1 for weight in weights.values())
            cluster.world.network.cut("client", "b2")
            await asyncio.sleep(12)
            assert bk.services.watcher.weights is not None
            assert bk.services.watcher.weights["b2"] == weights["b2"]  # type: ignore[index]
            cluster.node("b3").crash()
            await asyncio.sleep(60)
            assert "b3" not in bk.services.watcher.weights
        async with cluster.connect() as other:
            assert other.services.watcher.weights is None

    SimCluster(1, 3).run(story)
