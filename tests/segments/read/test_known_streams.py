"""Who reads what others knew refuses what only a stream's own cluster can tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from segments.errors import StreamConfigError
from segments.position import EARLIEST
from segments.read.known_streams import KnownStreams
from segments.seek import AtCursor
from tests.segments.clusters import AT_ONCE, a_namespace


async def test_a_part_is_read_in_another_client_and_has_no_cursor(tmp_path: Path) -> None:
    async with a_namespace(tmp_path) as namespace:
        stream = await namespace.create("orders", config=AT_ONCE)
        async with stream.writer() as writer:
            for number in range(3):
                await writer.append(b"%d" % number)
        part = await (await stream.view()).known(EARLIEST, await stream.tail_position())
        uri = f"embedded://{tmp_path}?bookies=3"
        async with await KnownStreams.connect(uri, part.cluster) as streams:
            await streams.learn(part.cluster)
            async with streams.read(part, EARLIEST) as reader:
                assert [record.value async for record in reader] == [b"0", b"1", b"2"]  # type: ignore[union-attr]
            async with streams.read(part, EARLIEST, stop=AtCursor("billing")) as reader:
                with pytest.raises(StreamConfigError, match="none of the name billing"):
                    await reader.next()
        with pytest.raises(StreamConfigError, match="names no kind of metadata store"):
            await KnownStreams.connect("etcd://somewhere", part.cluster)
