from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from segments.errors import HoldNotFoundError, StreamNotFoundError
from segments.gateway.calls import served_streams
from segments.position import LATEST
from segments.record import ProducerRef
from segments.remote import connect
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
        await stream.ownership.release()
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
        assert after is before and (after.stream.name, after.stream.node.name) == ("t", "t")


LONG_AGO = -1e9


async def test_a_stream_that_is_named_again_while_it_is_forgotten_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep ended its ownership for good, waited for that, and forgot it then: a call that came in between got the
    ended one, was told that the gateway is being stopped, and left a name that leads nowhere."""
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        await streams.namespace.create("s", config=CONFIG)
        before = await streams.get("s")
        before.asked_at = LONG_AGO
        streams._names.clear()
        end, began, go_on = before.ownership.end, asyncio.Event(), asyncio.Event()

        async def slowly() -> None:
            await end()
            began.set()
            await go_on.wait()

        monkeypatch.setattr(before.ownership, "end", slowly)
        sweeping = asyncio.create_task(streams.sweep())
        await began.wait()
        served_now = await streams.get("s")
        go_on.set()
        await sweeping
        assert await streams.get("s") is served_now is not before
        assert (await (await served_now.ownership.writer()).append(b"v")).seq_no == 0


async def test_a_stream_that_is_used_while_others_are_given_up_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are idle were listed, and then given up one after the other, however long that took."""
    async with served(tmp_path) as gateway:
        streams = gateway._table
        assert streams is not None
        for name in ("s", "t"):
            await streams.namespace.create(name, config=CONFIG)
            ownership = (await streams.get(name)).ownership
            await ownership.writer()
            ownership._used = LONG_AGO
        first, second = (await streams.get("s")).ownership, (await streams.get("t")).ownership
        give_up, began, go_on = first.release, asyncio.Event(), asyncio.Event()

        async def slowly() -> None:
            await give_up()
            began.set()
            await go_on.wait()

        monkeypatch.setattr(first, "release", slowly)
        sweeping = asyncio.create_task(streams.sweep())
        await began.wait()
        writer = await second.writer()
        go_on.set()
        await sweeping
        assert not first.is_here and second.is_here and await second.writer() is writer


async def test_what_hides_or_removes_goes_to_the_stream_that_has_the_name_now(tmp_path: Path) -> None:
    """Another gateway has renamed the one that had it a moment ago, and made another."""
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        here = gateway._namespace
        assert here is not None
        first = await here.create("s", config=CONFIG)
        async with first.writer() as writer:
            await writer.append(b"kept")
        await first.cursor("c").make()
        await first.hold("h")
        stream = await namespace.open("s")
        assert await stream.count() == 1
        await here.rename("s", "t")
        second = await here.create("s", config=CONFIG)
        async with second.writer() as writer:
            await writer.append(b"hidden")
        await stream.truncate(LATEST)
        await stream.cursor("c").delete()
        with pytest.raises(HoldNotFoundError):
            await stream.release_hold("h")
        await stream.seal()
        assert (await namespace.open("s")).id == second.id
        moved = await here.open("t")
        assert await moved.count() == 1 and set(await moved.cursors()) == {"c"} and len(await moved.holds()) == 1
        assert await second.count() == 0 and (await second.chain()).sealed and not (await moved.chain()).sealed
