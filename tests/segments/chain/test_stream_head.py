from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from bookkeeper.chains.owned_node import ClaimLostError, OwnedNode
from bookkeeper.errors import MetadataConflictError
from segments.chain import StreamChain, StreamHead
from segments.chain.stream_segment import NO_CONTENTS
from segments.errors import StreamNotFoundError
from tests.journal_manager.backends.bookkeeper.fake import Cluster


def record_on(cluster: Cluster) -> StreamHead:
    return StreamHead(cast(Any, cluster.client().metadata_store), "00ab", "flights")


async def test_a_record_lies_below_its_streams_id() -> None:
    """SEG-17 a stream that is not there is not found"""
    record = record_on(Cluster())
    assert record.path == "/ledgers-py/segments/streams/00ab/chain"
    with pytest.raises(StreamNotFoundError, match="flights") as caught:
        await record.read()
    assert caught.value.stream == "flights"
    await record.create_if_absent(StreamChain("00ab"))
    assert (await record.read())[0] == StreamChain("00ab")


@pytest.mark.rule("C5")
async def test_an_overtaken_owner_can_do_no_step() -> None:
    """SEG-39 two writers: the first cannot complete"""
    cluster = Cluster()
    record = record_on(cluster)
    await record.create_if_absent(StreamChain("00ab"))
    first = await OwnedNode.claim(record, "a", "n1")
    await first.step(lambda chain: chain.start_segment(7, 1))
    second = await OwnedNode.claim(record_on(cluster), "b", "n2")
    with pytest.raises(ClaimLostError) as caught:
        await first.step(lambda chain: chain.complete(1, NO_CONTENTS, 1))
    assert caught.value.found.owner == "b" and second.value.ledgers == (7,)


async def test_of_two_writes_over_one_version_one_wins() -> None:
    """SEG-20 a write over another version fails"""
    cluster = Cluster()
    record = record_on(cluster)
    await record.create_if_absent(StreamChain("00ab"))
    chain, version = await record.read()
    await record.write(chain.claim("a", "n1"), version)
    with pytest.raises(MetadataConflictError):
        await record_on(cluster).write(chain.claim("b", "n2"), version)


async def test_changes_are_told() -> None:
    cluster = Cluster()
    record, told = record_on(cluster), asyncio.Event()
    await record.create_if_absent(StreamChain("00ab"))
    watch = record.watch(told.set)
    await OwnedNode.claim(record_on(cluster), "a", "n1")
    await asyncio.wait_for(told.wait(), 5)
    watch.close()
