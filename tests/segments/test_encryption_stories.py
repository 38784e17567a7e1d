"""A stream on encrypted ledgers: everything works with the keys, nothing is shown without, and bookies see nothing."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bookkeeper.client.operators import Operator
from bookkeeper.encryption import RECORD_NAME
from bookkeeper.testing.cluster import CLIENT, SimCluster
from segments.entries.columns import RecordColumns
from segments.errors import StreamConfigError
from segments.namespace import connect
from segments.publish.staged_writer import StagedWriter
from segments.stream import Stream
from tests.bookkeeper.encryption.keys import encrypted
from tests.segments.publish.cluster import CONFIG, values_of

SECRET = b"a secret that no bookie sees"
WITH_KEYS = replace(CLIENT, encryption=encrypted(compression="lz4"))


@asynccontextmanager
async def stream_of(cluster: SimCluster, *, keys: bool = True, create: bool = True) -> AsyncIterator[Stream]:
    """The stream as one program has it."""
    config = WITH_KEYS if keys else CLIENT
    async with cluster.connect(config) as client, connect("", client=client) as namespace:
        yield await namespace.open("s", create=create, config=CONFIG if create else None)


async def written(stream: Stream) -> list[bytes]:
    """Records in two segments, and a batch that was published."""
    async with stream.writer() as writer:
        for number in range(10):
            await writer.append(SECRET + b"%d" % number)
        await writer.roll()
        await writer.append(SECRET + b"10")
    task = StagedWriter(stream.client, (stream.name, stream.id), stream.config, "staging", "app", inline=-1)
    await task.add(RecordColumns.of_values([SECRET + b"11", SECRET + b"12"]))
    publisher = await stream.publisher()
    await publisher.publish(None, [await task.finish()])
    await publisher.close()
    return [SECRET + b"%d" % number for number in range(13)]


@pytest.mark.rule("X18", "X24")
def test_a_stream_is_written_published_read_and_checked_and_bookies_see_nothing_of_it() -> None:
    async def story(cluster: SimCluster) -> None:
        async with stream_of(cluster) as stream:
            values = await written(stream)
            assert await values_of(stream) == values
            chain, _ = await stream.node.read()
            assert len(chain.password) == 32
            operator = Operator(stream.client)
            for segment in chain.segments:
                metadata = await operator.metadata(segment.ledger_id)
                assert metadata.password == chain.password and RECORD_NAME in metadata.custom
                stored = await operator.copy_on(metadata.last_fragment.ensemble[0], segment.ledger_id, 0)
                assert b"secret" not in stored.payload
            async with connect("", client=stream.client) as namespace:
                assert await namespace.verify("s") == ()

    SimCluster().run(story)


@pytest.mark.rule("X24")
def test_without_the_keys_nothing_is_read_and_the_sentence_says_why() -> None:
    async def story(cluster: SimCluster) -> None:
        async with stream_of(cluster) as stream:
            values = await written(stream)
            async with stream_of(cluster, keys=False, create=False) as blind:
                with pytest.raises(StreamConfigError, match="are encrypted, their key is wrapped under key new"):
                    await values_of(blind)
                writer = await stream.writer(owner="feeder")
                await writer.append(SECRET)
                with pytest.raises(StreamConfigError, match=r"claiming stream s: .* are encrypted"):
                    await blind.writer(owner="blind")
                await writer.append(SECRET)
                await writer.roll()  # nobody has claimed the stream
                await writer.close()
                async with connect("", client=blind.client) as namespace:
                    with pytest.raises(StreamConfigError, match="this client has no keys"):
                        await namespace.verify("s")
            assert await values_of(stream) == [*values, SECRET, SECRET]

    SimCluster().run(story)


@pytest.mark.rule("X18", "X24")
def test_what_travels_to_a_task_has_no_password_and_its_key_wrapped() -> None:
    async def story(cluster: SimCluster) -> None:
        async with stream_of(cluster) as stream:
            await written(stream)
            chain, _ = await stream.node.read()
            known = {}
            for segment in chain.segments:
                async with await stream.client.open_ledger(segment.ledger_id, None, recovery=False) as reader:
                    known[segment.ledger_id] = reader.known
            travels = pickle.dumps(known)
            assert chain.password not in travels and RECORD_NAME.encode() in travels
            await asyncio.sleep(1)
            async with await stream.client.open_known(known[chain.segments[0].ledger_id]) as reader:
                assert SECRET in await reader.read_entry(0)

    SimCluster().run(story)
