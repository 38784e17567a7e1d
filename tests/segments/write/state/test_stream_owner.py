"""Who may change a stream's node."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.outcome import Outcome
from segments.chain import StreamChain, StreamHead
from segments.errors import OwnershipLostError, StreamMetadataError, StreamNotFoundError, StreamSealedError
from segments.position import Position
from segments.write.segment.segment_change import begin_segment
from segments.write.state.stream_owner import StreamClaimLostError, StreamOwner, claim_nonce, error_for_caller
from tests.segments.fake import Cluster, chain_of, stream_on
from tests.spark_wal.webhdfs.virtual import in_virtual_time


def start(ledger: int):  # type: ignore[no-untyped-def]
    return lambda chain: begin_segment(chain, None, ledger, 100, "host:9")


@in_virtual_time
async def test_the_next_claim_ends_all_steps_and_names_who_made_it() -> None:
    """SEG-34 SEG-65: the error says who has the stream now."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    first = await StreamOwner.claim(stream.node, "first", claim_nonce(stream.client))
    await first.step(start(1))
    second = await StreamOwner.claim(stream.node, "second", claim_nonce(stream.client))
    assert (first.epoch, second.epoch) == (1, 2)
    for call in (lambda: first.step(StreamChain.discard_next), first.ensure_current):
        with pytest.raises(OwnershipLostError, match="second") as lost:
            await call()
        assert isinstance(lost.value, StreamClaimLostError)
        assert lost.value.owner == "second"
        copy = error_for_caller(lost.value, Outcome.UNKNOWN)
        assert (type(copy), copy.outcome, copy.owner) == (OwnershipLostError, Outcome.UNKNOWN, "second")
    await second.ensure_current()


@in_virtual_time
async def test_changes_by_others_end_no_owner() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    owner = await StreamOwner.claim(stream.node, "owner", claim_nonce(stream.client))
    await owner.step(start(1))
    chain, version = await stream.node.read()
    await stream.node.write(chain.truncate(Position(1, 5, 0)), version)
    await asyncio.gather(*(owner.step(StreamChain.discard_next) for _ in range(3)))
    assert (await chain_of(stream)).start == Position(1, 5, 0)


@in_virtual_time
async def test_a_stream_that_is_sealed_gone_or_out_of_reach_is_not_claimed() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    owner = await StreamOwner.claim(stream.node, "owner", claim_nonce(stream.client))
    await owner.step(StreamChain.seal)
    with pytest.raises(StreamSealedError):
        await StreamOwner.claim(stream.node, "late", claim_nonce(stream.client))
    missing = StreamHead(stream.client.metadata_store, "0" * 32, "gone")
    with pytest.raises(StreamNotFoundError):
        await StreamOwner.claim(missing, "late", claim_nonce(stream.client))
    cluster.fail_at = ("get", MetadataUnavailableError("away"))
    with pytest.raises(StreamMetadataError):
        await owner.ensure_current()
    await stream.client.metadata_store.store.delete(stream.node.path, None)
    with pytest.raises(StreamNotFoundError):
        await owner.ensure_current()
