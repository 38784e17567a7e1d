"""Streams for the tests of this room, made of ledgers and a record, without a writer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bookkeeper import BookKeeper
from bookkeeper.meta.store import Create
from bookkeeper.testing.cluster import SimCluster
from segments.chain import StreamChain, StreamHead, encode_chain, ledger_tags
from segments.checks.scan import SegmentScanner
from segments.config import StreamConfig
from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry
from segments.names import name_path, names_path, stream_path


def run(story: Callable[[BookKeeper], Awaitable[None]], seed: int = 1) -> None:
    """Run a story with a client of a simulated cluster."""

    async def work(cluster: SimCluster) -> None:
        async with cluster.connect() as client:
            await story(client)

    SimCluster(seed=seed).run(work)


ENTRIES = 3
"""In each segment; each entry has two records."""


async def make_stream(
    client: BookKeeper,
    name: str = "orders",
    *,
    segments: int = 3,
    opened: bool = False,
    config: StreamConfig | None = None,
    epoch: int = 1,
) -> StreamHead:
    """A stream with completed segments, and one that is open with ``opened``. Record n has the value ``record n``.

    The open segment's ledger is open, too: its handle is abandoned, as after a crash.
    """
    metadata = client.metadata_store
    stream_id = f"id-of-{name}".replace("/", "-")
    chain = StreamChain(stream_id, epoch, "nonce", "a writer")
    seq_no = 0
    for number in range(1, segments + 1 + opened):
        wall_ms = client.services.seams.clock.wall_ms()
        ledger = await client.create_ledger(custom_metadata=ledger_tags(stream_id, epoch))
        chain = chain.start_segment(ledger.id, wall_ms)
        scanner = SegmentScanner(number)
        for entry_id in range(ENTRIES):
            values = [b"record %d" % n for n in range(seq_no, seq_no + 2)]
            data = encode_entry(RecordColumns.of_values(values), first_seq_no=seq_no, append_ms=wall_ms)
            await ledger.append(data)
            scanner.add(entry_id, data)
            seq_no += 2
        if number > segments:
            await ledger.flush()
            await asyncio.sleep(1)  # the explicit LAC goes out
            await ledger.abandon()
        else:
            await ledger.close()
            chain = chain.complete(number, scanner.result().contents, wall_ms)
    await metadata.store.create(stream_path(metadata, stream_id), parents=True)
    if await metadata.store.exists(names_path(metadata)) is None:
        await metadata.store.create(names_path(metadata), parents=True)
    await metadata.store.multi(
        [
            Create(stream_path(metadata, stream_id, "config"), (config or StreamConfig()).encode()),
            Create(stream_path(metadata, stream_id, "cursors")),
            Create(stream_path(metadata, stream_id, "chain"), encode_chain(chain)),
            Create(name_path(metadata, name), stream_id.encode()),
        ]
    )
    return StreamHead(metadata, stream_id, name)


async def ledgers_of(client: BookKeeper) -> set[int]:
    return {ledger_id async for ledger_id in client.list_ledgers()}
