"""Opening writers and shared ones."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from bookkeeper import compression
from segments.config import StreamConfig
from segments.errors import MissingLibraryError, OwnershipLostError
from segments.write.opening import open_writer
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


@in_virtual_time
async def test_a_writer_begins_with_the_settings_that_hold_when_it_has_claimed_the_stream() -> None:
    """They were read before the claim: whoever changed them in between was told so, and the first segment, which may be
    the only one, was written as before."""
    cluster = Cluster()
    stream = await stream_on(cluster)
    reads = 0

    async def read() -> StreamConfig:
        nonlocal reads
        reads += 1
        config = await stream.read_config()
        if reads == 1:
            await stream.configure({"ensemble": 5, "compression": "lz4"})
        return config

    async with await open_writer(stream.client, stream.node, read) as writer:
        assert writer._output.sender.config.compression == "lz4"
    assert {made["ensemble"] for made in cluster.created} == {5}


@pytest.mark.parametrize(("ack_quorum", "when_short"), [(2, "name_absent"), (1, "fail")])
@in_virtual_time
async def test_a_segment_names_absent_bookies_only_where_more_than_one_must_answer(
    ack_quorum: int, when_short: str
) -> None:
    """With one acknowledgement a copy might be on its only bookie alone."""
    cluster = Cluster()
    stream = await stream_on(cluster, config=StreamConfig(ack_quorum=ack_quorum))
    async with stream.writer():
        assert {(made["ack_quorum"], made["when_short"]) for made in cluster.created} == {(ack_quorum, when_short)}


@in_virtual_time
async def test_a_writer_that_cannot_compress_is_refused_and_one_that_runs_goes_on_as_before(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    no_library: Any = None
    monkeypatch.setitem(sys.modules, "lz4.block", no_library)
    compression._lz4.cache_clear()
    try:
        stream = await stream_on(Cluster())
        async with stream.writer() as writer:
            await writer.append(b"0")
            await stream.configure({"compression": "lz4"})
            await writer.roll()
            await writer.append(b"1")
            assert "is compressed as before" in caplog.text
            epoch = (await chain_of(stream)).epoch
            with pytest.raises(MissingLibraryError, match=r"pip install '\.\[streams\]'"):
                await stream.writer()
            assert (await chain_of(stream)).epoch == epoch, "nobody was overtaken"
    finally:
        compression._lz4.cache_clear()
