"""A journal's node under compare-and-set."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from bookkeeper.errors import MetadataConflictError
from journal_manager import JournalNotFormattedError, NamespaceInfo
from journal_manager.backends.bookkeeper.journal_node import JournalNode, journal_names
from journal_manager.journals.chain import Chain
from tests.journal_manager.backends.bookkeeper.fake import Cluster


def record_on(cluster: Cluster, name: str = "a/b") -> JournalNode:
    return JournalNode(cast(Any, cluster.client().metadata_store), name)


async def test_a_record_lies_beside_the_clusters_own_state_one_node_a_name() -> None:
    cluster = Cluster()
    record = record_on(cluster)
    assert record.path == "/ledgers-py/journals/a%2Fb"
    with pytest.raises(JournalNotFormattedError, match="a/b"):
        await record.read()
    await record.create_if_absent(Chain(NamespaceInfo(1)))
    await record.create_if_absent(Chain(NamespaceInfo(2)))
    assert (await record.read())[0].namespace == NamespaceInfo(1)


@pytest.mark.rule("C5")
async def test_of_two_writes_over_one_version_one_wins() -> None:
    cluster = Cluster()
    one, two = record_on(cluster), record_on(cluster)
    await one.create_if_absent(Chain(NamespaceInfo()))
    chain, version = await one.read()
    await one.write(chain.claim("one"), version)
    with pytest.raises(MetadataConflictError):
        await two.write(chain.claim("two"), version)
    assert (await two.read())[0].token.owner == "one"


async def test_changes_are_told() -> None:
    cluster = Cluster()
    record, told = record_on(cluster), asyncio.Event()
    await record.create_if_absent(Chain(NamespaceInfo()))
    watch = record.watch(told.set)
    chain, version = await record.read()
    await record_on(cluster).write(chain.claim("x"), version)
    await asyncio.wait_for(told.wait(), 5)
    watch.close()


async def test_all_journals_of_a_cluster_are_listed_by_name() -> None:
    cluster = Cluster()
    metadata = cast(Any, cluster.client().metadata_store)
    assert await journal_names(metadata) == ()
    for name in ("b", "a/b"):
        await record_on(cluster, name).create_if_absent(Chain(NamespaceInfo()))
    assert await journal_names(metadata) == ("a/b", "b")
