"""Which bookies do not follow the access policy."""

from __future__ import annotations

import pytest

from bookkeeper.access import Mode, Policy, PolicyChange
from bookkeeper.ids import BookieId
from bookkeeper.meta import Metadata
from bookkeeper.meta.access_coverage import java_bookies, not_following, policy_mode, warn_of_java_bookies
from bookkeeper.meta.cluster import init_cluster_in
from bookkeeper.meta.records.access_servers import BOOKIE, AccessReport
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.testing.world import World


def test_bookies_that_report_follow_and_bookies_without_a_start_are_javas(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        store = MemoryCluster().connect()
        await init_cluster_in(store, node.seams)
        metadata = await Metadata.over(store, node.seams)
        for name in ("ours", "older", "java"):
            await store.create(metadata.paths.available_bookie(BookieId(name)), ephemeral=True, parents=True)
        for name in ("ours", "older"):
            await store.create(metadata.own("boot", name), b"1", parents=True)
        await metadata.access_servers.publish(AccessReport(BOOKIE, "ours", Mode.ENFORCE, "current", 0))
        assert await not_following(metadata) == ["java", "older"]
        assert await java_bookies(metadata) == ["java"]
        await warn_of_java_bookies(metadata, Mode.OFF)
        assert caplog.records == []
        await warn_of_java_bookies(metadata, Mode.ENFORCE)
        assert [each.getMessage().rpartition(": ")[2] for each in caplog.records] == ["java"]
        await store.delete(metadata.paths.available_bookie(BookieId("java")), None)
        await warn_of_java_bookies(metadata, Mode.ENFORCE)
        assert len(caplog.records) == 1

    with World(1) as world:
        node = world.node("n")
        world.run(story())


def test_the_mode_is_the_records_and_unknown_where_it_cannot_be_read() -> None:
    async def story() -> None:
        store = MemoryCluster().connect()
        await init_cluster_in(store, node.seams)
        metadata = await Metadata.over(store, node.seams)
        assert await policy_mode(metadata) is Mode.OFF
        await metadata.access.change(lambda policy: Policy(Mode.OBSERVE), PolicyChange(1, "eve", "x"))
        observed = await policy_mode(metadata)
        assert observed is Mode.OBSERVE
        await store.set(metadata.access.path, b"rubbish", None)
        assert await policy_mode(metadata) is None

    with World(1) as world:
        node = world.node("n")
        world.run(story())
