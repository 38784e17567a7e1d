"""Tails through a gateway in the same loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from segments.errors import (
    ProducerFencedError,
    SequenceGapError,
)
from segments.record import AppendOutcome
from segments.remote import connect
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_producer_appends_once_and_is_fenced_by_the_next_of_its_name(tmp_path: Path) -> None:
    """SEG-116, SEG-117 through a gateway."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.producer("p") as producer:
            assert (producer.epoch, producer.last_seq) == (1, None)
            one = await producer.append(b"one")
            again = await producer.append(b"one", seq=0)
            assert (again.duplicate, again.position) == (True, one.position)
            with pytest.raises(SequenceGapError) as gap:
                await producer.append(b"three", seq=5)
            assert gap.value.expected == 1
            assert await producer.outcome(0) == (AppendOutcome.APPENDED, again)
            assert (await producer.outcome(9))[0] is AppendOutcome.REJECTED
            second = await stream.producer("p")
            assert (second.epoch, second.last_seq, second.next_seq) == (2, 0, 1)
            with pytest.raises(ProducerFencedError):
                await producer.append(b"late", seq=1)
            assert producer.lost.is_set()
            await second.append_batch([b"a", b"b"])
            await second.close()
        assert [record.value async for record in stream.read()] == [b"one", b"a", b"b"]  # type: ignore[union-attr]
