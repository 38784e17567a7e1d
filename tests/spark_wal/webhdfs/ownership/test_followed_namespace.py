"""The tree as somebody reads it who is not its owner."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.testing.cluster import SimCluster
from spark_wal.webhdfs.files.snapshot import dump
from spark_wal.webhdfs.ownership import followed_namespace
from spark_wal.webhdfs.ownership.followed_namespace import FollowedNamespace, NamespaceNotFollowedError
from tests.spark_wal.webhdfs.ownership.test_cluster_backing import gateway_on, put


def test_it_has_what_is_durable_reads_only_what_is_new_and_fences_nobody() -> None:
    """The owner keeps snapshots and purges meanwhile: what follows begins again at the snapshot where it has to."""

    async def story(cluster: SimCluster) -> None:
        gateway = await gateway_on(cluster, cluster.client)
        await gateway.start()
        owner = await gateway.owner()
        async with cluster.connect() as client:
            assert await FollowedNamespace(client, "none").catch_up() is None
            follower = FollowedNamespace(client, "n")
            for round_ in range(3):
                for number in range(30):  # the owner keeps a snapshot after 40 records
                    await put(owner, f"/c/{round_}/{number}", b"data %d" % number)
                await asyncio.sleep(2)
                tree = await follower.catch_up()
                assert tree is not None and tree.sequence == owner.durable_txid
                assert dump(tree) == dump(owner.namespace)
            late = FollowedNamespace(client, "n")
            for number in range(130):  # so many that what it has seen last is purged
                await put(owner, f"/d/{number}", b"more")
                await asyncio.sleep(0.1)
            for each in (follower, late):
                caught_up = await each.catch_up()
                assert caught_up is not None and dump(caught_up) == dump(owner.namespace)
        assert owner.holds_lease
        await gateway.close()

    SimCluster(seed=3).run(story)


def test_one_that_is_too_large_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_namespace, "BYTES_MAX", 2000)

    async def story(cluster: SimCluster) -> None:
        gateway = await gateway_on(cluster, cluster.client)
        await gateway.start()
        owner = await gateway.owner()
        async with cluster.connect() as client:
            follower = FollowedNamespace(client, "n")
            await put(owner, "/a", bytes(500))
            assert await follower.catch_up() is not None
            for number in range(15):
                await put(owner, f"/{number}", bytes(500))
            with pytest.raises(NamespaceNotFollowedError, match="MiB of edits behind its newest snapshot"):
                await follower.catch_up()
            for number in range(15, 45):
                await put(owner, f"/{number}", bytes(500))
            await asyncio.sleep(2)
            with pytest.raises(NamespaceNotFollowedError, match="bk checkpoint list"):
                await follower.catch_up()
        await gateway.close()

    SimCluster(seed=3).run(story)


def test_a_journal_that_cannot_be_read_is_told_and_tried_again() -> None:
    async def story(cluster: SimCluster) -> None:
        gateway = await gateway_on(cluster, cluster.client)
        await gateway.start()
        await put(await gateway.owner(), "/a", b"x")
        async with cluster.connect() as client:
            follower = FollowedNamespace(client, "n")
            metadata = client.metadata_store
            path = metadata.own("journals", "webhdfs%2Fn")
            good = (await metadata.store.get(path)).value
            await metadata.store.set(path, b"rubbish", None)
            with pytest.raises(NamespaceNotFollowedError, match="namespace n cannot be read"):
                await follower.catch_up()
            await metadata.store.set(path, good, None)
            tree = await follower.catch_up()
            assert tree is not None and "a" in tree.root.children
        await gateway.close()

    SimCluster(seed=3).run(story)
