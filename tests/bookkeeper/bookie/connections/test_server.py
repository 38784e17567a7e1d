"""All connections together: how many there are, which are too slow, and what memory goes back to the system."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.bookie.connections.server_connection import ServerConnection
from bookkeeper.ids import EntryId
from bookkeeper.net.connection import AddRun
from bookkeeper.net.in_process import PairTransport
from bookkeeper.net.receive_memory import RECEIVE_BUFFER
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.connections.test_server_connection import L, adds
from tests.bookkeeper.bookie.house import ADDRESS, KEY, House, RawPeer, run
from tests.bookkeeper.bookie.test_bookie import entry


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


def test_memory_for_the_largest_frame_is_taken_when_one_comes() -> None:
    async def main(house: House) -> None:
        scratch, largest = house.connections.scratch, house.connections.frame_max
        usual = scratch(1)
        assert scratch(RECEIVE_BUFFER) is usual and RECEIVE_BUFFER < len(usual) < largest
        large = scratch(RECEIVE_BUFFER + 9000)
        assert len(large) > largest and scratch(largest) is large and scratch(1) is large
        assert len(scratch(largest + 9000)) > largest + 9000

    run(main)


async def coming_from(house: House, address: str) -> RawPeer:
    """A connection of a peer at an address."""

    class At(PairTransport):
        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return (address, 1, 0, 0) if name == "peername" else super().get_extra_info(name, default)

    peer = RawPeer()
    At.pair(asyncio.get_running_loop(), peer, ServerConnection(house.connections), ADDRESS)
    await asyncio.sleep(0)
    return peer


@pytest.mark.rule("X34")
def test_of_ipv6_a_network_is_one_address() -> None:
    """A full address counted, of which a host has 2**64: one host took every connection."""

    async def main(house: House) -> None:
        hosts = [f"2001:db8:0:1:{n:x}::{n:x}" for n in range(1, 9)]
        peers = [await coming_from(house, host) for host in hosts]
        await asyncio.sleep(0.1)
        assert [peer.closed for peer in peers] == [False] * 3 + [True] * 5
        others = ["2001:db8:0:2::1", "::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"]
        closed = [(await coming_from(house, other), other) for other in others]
        await asyncio.sleep(0.1)
        assert [peer.closed for peer, _ in closed] == [False, False, False, False, True, False]
        peers[0].transport.close()
        await asyncio.sleep(0.1)
        again = await coming_from(house, "2001:db8:0:1:ffff::")
        await asyncio.sleep(0.1)
        assert not again.closed and {one.host for one in house.accepted()} >= {hosts[1], "::ffff:10.0.0.1"}

    run(main, connections_per_host_max=3)


@pytest.mark.rule("X34")
def test_a_connection_that_is_silent_for_long_is_closed_and_its_client_makes_another_one() -> None:
    """It never ended: whoever opened connections and said nothing had them for good."""

    async def main(house: House) -> None:
        silent, talking, polling = await house.raw(), await house.client(), await house.client()
        polls: list[object] = []
        assert (await talking.request(wire.AddEntry(L, EntryId(0), KEY, entry(0)), 10)).status is Status.OK
        for _ in range(3):
            poll = wire.ReadEntry(L, EntryId(1), previous_lac=0, timeout_ms=60_000, piggyback=False)
            polling.request_nowait(poll, 1000, polls.append)
            for _ in range(50):
                await asyncio.sleep(1)
                await talking.request(wire.ReadEntry(L, EntryId(0)), 10)
            await asyncio.sleep(15)
        assert len(polls) == 3, "who waits for news is not silent"
        assert (silent.closed, talking.closed, polling.closed) == (True, False, False)
        assert house.metrics.counter("idle_connections_total").value == 1
        assert house.metrics.counter("slow_peers_total").value == 0
        await asyncio.sleep(100)
        assert talking.closed and polling.closed and not house.connections.connections
        assert (await (await house.client()).request(wire.ReadEntry(L, EntryId(0)), 10)).status is Status.OK

    run(main, idle_s=40.0)


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
        house.connections._return_memory = lambda: given_back.append(house.connections.memory.held)
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
