"""What becomes of a stream, through a gateway in the same loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from segments.errors import (
    StreamSealedError,
)
from segments.position import EARLIEST
from segments.remote import connect
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_tail_gets_records_as_they_come_and_ends_when_the_stream_is_sealed(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.read(follow=True) as reader, stream.writer() as writer:
            assert await reader.next(timeout=0.1) is None
            for number in range(5):
                await writer.append(b"%d" % number)
                record = await reader.next(timeout=10)
                assert record is not None
                assert record.seq_no == number  # type: ignore[union-attr]
            await stream.roll()
            await writer.append(b"after")
            assert (await reader.next(timeout=10)).value == b"after"  # type: ignore[union-attr]
            await reader.seek(EARLIEST)
            assert len(await reader.next_batch(wait=10)) >= 1
            assert await stream.seal() == writer.tail
            with pytest.raises(StreamSealedError):
                await writer.append(b"no")
            async with asyncio.timeout(20):
                while await reader.next() is not None:
                    pass
            assert reader.ended
