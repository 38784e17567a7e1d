from __future__ import annotations

from pathlib import Path

import pytest

from segments.errors import StreamNotFoundError
from segments.gateway import served_streams
from segments.record import ProducerRef
from tests.segments.gateway.clusters import CONFIG, served


async def test_a_producer_is_found_by_its_epoch_on_the_writer_that_is_open(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        with pytest.raises(StreamNotFoundError):
            await streams.get("s")
        await streams.namespace.create("s", config=CONFIG)
        stream = await streams.get("s")
        assert await streams.get("s") is stream
        assert (streams.owned, stream.ownership.is_here) == (0, False)
        writer = await stream.ownership.writer()
        assert streams.owned == 1
        current = ProducerRef("p", 0, 0)
        assert stream.known_producer(writer, current, monotonic=False) is None
        first = await stream.producer(writer, current, monotonic=False)
        assert (first.epoch, stream.known_producer(writer, current, monotonic=False)) == (1, first)
        later = await stream.producer(writer, ProducerRef("p", 5, 0), monotonic=False)
        assert later.epoch == 5
        assert stream.known_producer(writer, current, monotonic=False) is later
        await streams.sweep()
        assert streams.owned == 1
        await stream.ownership.give_up()
        assert streams.owned == 0


async def test_as_many_producers_are_at_hand_as_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway kept an object for each name that ever appended through it."""
    monkeypatch.setattr(served_streams, "PRODUCERS_KEPT", 3)
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        await streams.namespace.create("s", config=CONFIG)
        stream = await streams.get("s")
        writer = await stream.ownership.writer()
        for number in range(10):
            await stream.producer(writer, ProducerRef(f"p{number}", 0, 0), monotonic=False)
            assert len(stream._producers) == min(number + 1, 3)
        again = stream.known_producer(writer, ProducerRef("p0", 0, 0), monotonic=False)
        assert again is not None and (again.name, again.epoch) == ("p0", 1)
        assert stream.known_producer(writer, ProducerRef("p0", 0, 0), monotonic=False) is again


async def test_a_stream_that_is_renamed_while_it_is_served_is_known_by_its_new_name(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        await streams.namespace.create("s", config=CONFIG)
        before = await streams.get("s")
        await before.ownership.writer()
        await streams.namespace.rename("s", "t")
        after = await streams.get("t")
        assert after is before and (after.stream.name, after.stream.record.name) == ("t", "t")
