"""The next ledger, made in advance: who has it, and that none is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import MetadataUnavailableError, NotEnoughBookiesError
from segments.chain import StreamChain, ledger_tags
from segments.errors import OwnershipLostError, StreamNotReadyError, StreamUnavailableError
from segments.stream import Stream
from segments.write.ledgers.ledger_allocator import LedgerAllocator
from segments.write.state.stream_owner import StreamOwner, claim_nonce
from tests.segments.fake import Cluster, chain_of, stream_on
from tests.spark_wal.webhdfs.virtual import in_virtual_time


async def an_allocator(stream: Stream) -> LedgerAllocator:
    owner = await StreamOwner.claim(stream.node, "test", claim_nonce(stream.client))
    tags = ledger_tags(stream.id, owner.epoch)

    async def new_ledger():  # type: ignore[no-untyped-def]
        return await stream.client.create_ledger(custom_metadata=tags)

    return LedgerAllocator(stream.client, owner, new_ledger, Tasks("test"))


@in_virtual_time
async def test_a_ledger_made_in_advance_is_named_and_obtained_once() -> None:
    """SEG-29: a second obtain before the first is settled fails."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    allocator = await an_allocator(stream)
    allocator.prepare()
    allocator.prepare()
    await asyncio.sleep(1)
    assert allocator.is_ready
    named = (await chain_of(stream)).next_ledger
    handle = await allocator.obtain()
    assert handle.id == named
    with pytest.raises(StreamNotReadyError):
        await allocator.obtain()
    allocator.give_back()
    assert (await allocator.obtain()).id == named, "SEG-33: a start that failed gives it back"
    allocator.mark_used()
    assert (await allocator.obtain()).id != named
    assert list(cluster.ledgers) == [1, 2]


@in_virtual_time
async def test_of_two_owners_the_one_that_was_overtaken_deletes_its_ledger() -> None:
    """SEG-30"""
    cluster = Cluster()
    loser = await an_allocator(await stream_on(cluster))
    stream = await stream_on(cluster.sibling())
    winner = await an_allocator(stream)
    loser.prepare()
    winner.prepare()
    await asyncio.sleep(1)
    assert (loser.is_ready, winner.is_ready) == (False, True)
    assert set(cluster.ledgers) == {(await chain_of(stream)).next_ledger}
    inline = await an_allocator(stream)
    await inline.obtain()
    inline.give_back()
    await an_allocator(stream)
    await inline.close(discard=True)
    assert set(cluster.ledgers) == {(await chain_of(stream)).next_ledger}


@in_virtual_time
async def test_what_a_former_owner_made_is_deleted_only_after_our_own_is_named() -> None:
    """SEG-31"""
    cluster = Cluster()
    stream = await stream_on(cluster)
    former = await an_allocator(stream)
    former.prepare()
    await asyncio.sleep(1)
    (left,) = cluster.ledgers
    failing = cluster.sibling()
    failing.fail_at = ("create_ledger", NotEnoughBookiesError("none"))
    allocator = await an_allocator(await stream_on(failing))
    allocator.prepare()
    await asyncio.sleep(1)
    assert not allocator.is_ready
    assert (await chain_of(stream)).next_ledger == left
    assert set(cluster.ledgers) == {left}
    allocator.prepare()
    await asyncio.sleep(1)
    chain = await chain_of(stream)
    assert left not in cluster.ledgers
    assert set(cluster.ledgers) == {chain.next_ledger}
    assert chain.removing == ()


@in_virtual_time
async def test_too_few_bookies_are_an_error_for_who_obtains_and_the_next_attempt_may_succeed() -> None:
    """SEG-32"""
    cluster = Cluster()
    cluster.fail_at = ("create_ledger", NotEnoughBookiesError("2 of 3"))
    allocator = await an_allocator(await stream_on(cluster))
    with pytest.raises(StreamUnavailableError, match="2 of 3"):
        await allocator.obtain()
    assert (await allocator.obtain()).id == 1


@in_virtual_time
async def test_closing_deletes_what_was_made_or_leaves_it_to_the_next_owner() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    allocator = await an_allocator(stream)
    allocator.prepare()
    await asyncio.sleep(1)
    await allocator.close(discard=False)
    assert (await chain_of(stream)).next_ledger == 1
    allocator = await an_allocator(stream)
    await allocator.obtain()
    allocator.give_back()
    await allocator.close(discard=True)
    assert list(cluster.ledgers) == [1]
    allocator.prepare()
    await asyncio.sleep(1)
    await allocator.replace()
    chain = await chain_of(stream)
    assert (chain.next_ledger, chain.removing, cluster.ledgers) == (None, (), {})
    with pytest.raises(OwnershipLostError):
        await (await an_allocator(stream), allocator)[1]._owner.ensure_current()


def overtaken_after(allocator: LedgerAllocator, stream: Stream) -> None:
    """The next step of the allocator's owner is done, its reply is lost, and another owner claims the record."""
    owner = allocator._owner
    step = owner.step

    async def done_and_overtaken(change: Callable[[StreamChain], StreamChain]) -> StreamChain:
        await step(change)
        await StreamOwner.claim(stream.node, "another", claim_nonce(stream.client))
        return await step(change)

    owner.step = done_and_overtaken  # type: ignore[method-assign]


@in_virtual_time
@pytest.mark.rule("C6", "C9")
async def test_a_ledger_that_the_record_names_is_not_deleted_by_the_owner_that_was_overtaken() -> None:
    """The step was done and its reply lost. Nothing asked the record, or what it said was not looked at."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    allocator = await an_allocator(await stream_on(cluster.sibling()))
    overtaken_after(allocator, stream)
    allocator.prepare()
    await asyncio.sleep(1)
    assert not allocator.is_ready
    assert (await chain_of(stream)).next_ledger == 1 and set(cluster.ledgers) == {1}

    allocator = await an_allocator(await stream_on(cluster.sibling()))
    handle = await allocator.obtain()
    await allocator._owner.step(lambda chain: chain.start_segment(handle.id, 0))
    allocator.give_back()  # as if the reply had been lost
    await StreamOwner.claim(stream.node, "another", claim_nonce(stream.client))
    await allocator.close(discard=True)
    assert (await chain_of(stream)).segments[-1].ledger_id == handle.id and handle.id in cluster.ledgers


@in_virtual_time
@pytest.mark.rule("C6", "C9")
async def test_a_ledger_stays_while_nobody_can_say_whether_the_record_names_it() -> None:
    """A record that could not be read counted as one that names nothing, so a segment's ledger was deleted."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    losing = cluster.sibling()
    allocator = await an_allocator(await stream_on(losing))
    handle = await allocator.obtain()
    await allocator._owner.step(lambda chain: chain.start_segment(handle.id, 0))
    allocator.give_back()
    await StreamOwner.claim(stream.node, "another", claim_nonce(stream.client))
    step = allocator._owner.step

    async def refused_and_away(change: Callable[[StreamChain], StreamChain]) -> StreamChain:
        try:
            return await step(change)
        finally:
            losing.fail_at = ("sync", MetadataUnavailableError("the store went away"))

    allocator._owner.step = refused_and_away  # type: ignore[method-assign]
    await allocator.close(discard=True)
    assert losing.fail_at is None, "it has asked"
    assert (await chain_of(stream)).segments[-1].ledger_id == handle.id and handle.id in cluster.ledgers
