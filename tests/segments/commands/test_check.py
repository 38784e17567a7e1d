"""``bk stream check``."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from bookkeeper import BookKeeper
from segments.chain import StreamChain, StreamHead
from segments.retention.chain_steps import change_chain
from segments.stream_settings import find_stream
from tests.segments.commands.helpers import Streams


def wrong_count(chain: StreamChain) -> StreamChain:
    last = chain.segments[-1]
    last = replace(last, contents=replace(last.contents, records=2))
    return replace(chain, recent=(*chain.segments[:-1], last), records=chain.records - 1)


def spoil(streams: Streams) -> None:
    async def work() -> None:
        async with BookKeeper.connect(streams.uri) as client:
            stream_id = await find_stream(client.metadata_store, "orders")
            await change_chain(StreamHead(client.metadata_store, stream_id, "orders"), wrong_count)

    asyncio.run(work())


def test_sound_streams(tmp_path: Path) -> None:
    streams = Streams(tmp_path)
    streams.filled(segments=2)
    assert streams.run("check") == "all streams: nothing is wrong\n"
    assert streams.run("check", "orders", "--no-scan") == "orders: nothing is wrong\n"
    assert streams.json("check") == []
    assert "there is no stream named others" in streams.run("check", "others", status=1)


def test_a_wrong_count_is_found_and_repaired(tmp_path: Path) -> None:
    """SEG-110 from the command line: a check says what is wrong and changes nothing; a repair asks, and repairs."""
    streams = Streams(tmp_path)
    streams.filled(segments=2)
    spoil(streams)
    found = streams.run("check", status=1)
    assert "orders: segment 2: it holds 3 records, and the stream's node says 2 [--repair would write down" in found
    assert [row["problem"] for row in streams.json("check", "orders", status=1)] == ["wrong count"]
    assert "Continue?" in streams.run("check", "--repair", data="n\n", status=1)
    assert streams.run("check", "--repair", "--yes").endswith("all streams: 1 finding, 1 of them repaired\n")
    assert streams.run("check") == "all streams: nothing is wrong\n"
    assert streams.run("append", "orders", data="more\n").startswith("1 record from 3:0:0 to 3:0:0")
