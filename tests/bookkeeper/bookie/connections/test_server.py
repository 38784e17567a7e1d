"""All connections together: how many there are, which are too slow, and what memory goes back to the system."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.net.connection import AddRun
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.connections.test_server_connection import L, adds
from tests.bookkeeper.bookie.house import House, run


@pytest.mark.rule("X34")
def test_one_connection_too_many_is_closed() -> None:
    async def main(house: House) -> None:
        first = [await house.raw() for _ in range(3)]
        late = await house.raw()
        await asyncio.sleep(0.1)
        assert [peer.closed for peer in (*first, late)] == [False, False, False, True]
        first[0].transport.close()
        await asyncio.sleep(0.1)
        assert not (await house.raw()).closed

    run(main, connections_max=3)


@pytest.mark.rule("X34")
def test_a_sender_that_never_finishes_its_frame_loses_the_connection() -> None:
    async def main(house: House) -> None:
        slow, idle = await house.raw(), await house.raw()
        for byte in adds(0, 1)[:50]:
            slow.send(bytes([byte]))
            await asyncio.sleep(1)
        assert slow.closed
        assert not idle.closed, "silence is legal"
        assert house.metrics.counter("slow_peers_total").value == 1

    run(main, slow_frame_s=20.0)


@pytest.mark.rule("X34", "P12")
def test_half_frames_that_fill_the_memory_make_room_for_who_goes_on_sending() -> None:
    """Nothing bounded what all unfinished frames together took: each half a frame of 5 MB kept 5 MB for 30 s."""
    given_back = []

    async def main(house: House) -> None:
        house.connections._give_back = lambda: given_back.append(house.connections.memory.held)
        frame = adds(0, 1, size=900_000)
        hostile = [await house.raw() for _ in range(60)]
        for peer in hostile:
            for at in range(0, 450_000, 50_000):
                peer.send(frame[at : at + 50_000])
                await asyncio.sleep(0.001)
        assert house.connections.memory.crowded
        assert house.connections.memory.held <= 17_000_000 + 1_000_000 + 60 * 50_000, "one goes beyond the limit"
        honest = await house.client()
        stored: list[AddRun] = []
        honest.open_stream(2, L, stored.extend, lambda error: None).send(adds(0, 1, size=900_000, stream=2))
        await asyncio.sleep(29)
        assert stored == [(0, 1, Status.OK)], "before the 30 s are over that a lone frame may take"
        await asyncio.sleep(31)
        assert all(peer.closed for peer in hostile)
        assert (house.connections.memory.held, house.connections.memory.crowded) == (0, False)
        assert given_back[-1] <= 1_000_000, "what is free goes back to the system"

    run(main, receive_bytes=17_000_000)
