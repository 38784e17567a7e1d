"""Opening writers and shared ones."""

from __future__ import annotations

import asyncio

import pytest

from segments.errors import OwnershipLostError
from tests.segments.fake import Cluster, chain_of, stream_on
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_a_writer_names_its_owner_and_its_place() -> None:
    stream = await stream_on(Cluster())
    async with stream.writer(owner="me", location="host:1"):
        chain = await chain_of(stream)
        assert (chain.owner, chain.location) == ("me", "host:1")
    async with stream.writer():
        assert (await chain_of(stream)).owner != ""


@in_virtual_time
async def test_many_claims_at_once_leave_one_owner() -> None:
    """SEG-35: the last one that claims has the stream; the others are told so."""
    cluster = Cluster()
    streams = [await stream_on(cluster.sibling()) for _ in range(5)]
    opened = await asyncio.gather(*(stream.writer() for stream in streams), return_exceptions=True)
    writers = [writer for writer in opened if not isinstance(writer, BaseException)]
    assert all(isinstance(each, OwnershipLostError) for each in opened if isinstance(each, BaseException))
    done = await asyncio.gather(*(writer.append(b"v") for writer in writers), return_exceptions=True)
    assert sum(not isinstance(each, BaseException) for each in done) == 1
    await asyncio.gather(*(writer.close() for writer in writers), return_exceptions=True)
    chain = await chain_of(streams[0])
    assert (len(chain.segments), chain.records) == (1, 1)
    assert set(cluster.ledgers) == set(chain.ledgers)


@in_virtual_time
async def test_the_next_producer_of_a_stream_that_was_lost_takes_it_over_again() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    old = await stream.producer("p")
    await old.append(b"0")
    other = await stream_on(cluster.sibling())
    async with other.producer("p") as producer:
        await producer.append(b"1")
        await asyncio.wait_for(old.writer.lost.wait(), 5)
        with pytest.raises(OwnershipLostError):
            await old.append(b"2")
    async with stream.producer("p") as producer:
        assert (producer.epoch, producer.next_seq) == (3, 2)
        await producer.append(b"2")
    await asyncio.gather(old.close(), return_exceptions=True)
    assert (await chain_of(stream)).records == 3
