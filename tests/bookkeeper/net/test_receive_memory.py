"""Connections borrow the memory they receive into, and keep little of it; what they keep is bounded."""

from __future__ import annotations

import asyncio
import struct

import pytest

from bookkeeper.net.frame_protocol import FrameProtocol, memory_of
from bookkeeper.net.receive_memory import FREE, ReceiveMemory

FRAME = 600_000
"""Bytes of a large frame, its length included."""


class Peer(FrameProtocol):
    """Counts whole frames."""

    def __init__(self, memory: ReceiveMemory | None = None, account: str = "") -> None:
        super().__init__(frame_max=FRAME, memory=memory)
        self.account = account
        self.sizes: list[int] = []

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        at = start
        while end - at >= 4 and end - at >= (size := 4 + struct.unpack_from(">I", buffer, at)[0]):
            assert buffer[at + 4 : at + size] == bytes([size % 251]) * (size - 4)
            self.sizes.append(size)
            at += size
        return at - start


def frame(size: int = FRAME) -> bytes:
    return struct.pack(">I", size - 4) + bytes([size % 251]) * (size - 4)


class Socket(asyncio.Transport):
    """Bytes on their way to ``peer``, which takes them while it reads, as from a system's socket."""

    def __init__(self, peer: Peer) -> None:
        super().__init__()
        self.peer, self.waiting, self.reading = peer, b"", True
        peer.connection_made(self)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return False

    def receive(self) -> None:
        """As much as one read gives."""
        room = self.peer.get_buffer(-1)
        n = min(len(room), len(self.waiting), 65536)
        room[:n], self.waiting = self.waiting[:n], self.waiting[n:]
        self.peer.buffer_updated(n)


async def arrive(sockets: list[Socket], data: bytes) -> None:
    """``data`` is sent to all of them; returns when nobody takes any more."""
    for socket in sockets:
        socket.waiting += data
    while ready := [socket for socket in sockets if socket.reading and socket.waiting]:
        for socket in ready:
            socket.receive()
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.rule("P12", "X31")
async def test_a_connection_that_has_nothing_to_keep_holds_no_memory() -> None:
    """Each connection owned a receive buffer of 64 KB from its beginning, and of half a megabyte after a busy moment:
    thousands of silent ones took as many times as much, for as long as they stayed."""
    one, other = Socket(Peer()), Socket(Peer())
    shared = memory_of(asyncio.get_running_loop())
    assert one.peer.get_buffer(-1).obj is other.peer.get_buffer(-1).obj is shared.buffer
    await arrive([one], frame() * 10)
    assert (one.peer.sizes, len(one.peer._kept), shared.held) == ([FRAME] * 10, 0, 0)


@pytest.mark.rule("P12", "X31")
async def test_what_is_kept_of_a_frame_grows_with_its_bytes_and_not_with_its_announced_length() -> None:
    """A header that announced a large frame made the buffer as large as the frame, before its bytes came."""
    memory = ReceiveMemory()
    socket = Socket(Peer(memory))
    await arrive([socket], frame()[:20_004])
    assert FREE < memory.held < FRAME
    await arrive([socket], frame()[20_004:])
    assert (socket.peer.sizes, memory.held, len(socket.peer._kept)) == ([FRAME], 0, 0)


@pytest.mark.rule("P12", "X31", "X32")
@pytest.mark.parametrize("first", [1, 3, 5, 4096, FREE + 1, 70_000, FRAME // 2, FRAME - 1])
async def test_unfinished_frames_together_stay_within_the_limit_and_all_are_finished(first: int) -> None:
    """Every connection could keep a frame of the largest size, and nothing bounded all of them together."""
    memory = ReceiveMemory(2 * FRAME)
    sockets = [Socket(Peer(memory, "a")) for _ in range(20)]
    for data in (frame()[:first], frame()[first:]):
        await arrive(sockets, data)
        assert sum(len(socket.peer._kept) for socket in sockets) <= memory.peak + 20 * FREE
    assert [socket.peer.sizes for socket in sockets] == [[FRAME]] * 20
    assert (memory.held, memory.crowded) == (0, False)
    memory.validate_state()
    assert memory.peak <= 3 * FRAME, "one of them goes beyond the limit, so that all come to an end"


@pytest.mark.rule("P12", "X31")
async def test_frames_of_ordinary_size_pass_while_large_ones_wait() -> None:
    memory = ReceiveMemory(2 * FRAME)
    sockets = [Socket(Peer(memory, "a")) for _ in range(10)]
    await arrive(sockets[:9], frame()[: FRAME - 1])
    assert memory.crowded
    assert memory.left <= 0
    memory.validate_state()
    sizes = [100 + i % 1000 for i in range(500)]
    await arrive(sockets[9:], b"".join(map(frame, sizes)))
    assert sockets[9].peer.sizes == sizes


@pytest.mark.rule("P12", "X31")
async def test_an_address_that_holds_all_the_memory_keeps_no_other_out() -> None:
    memory = ReceiveMemory(2 * FRAME)
    hostile, other = [Socket(Peer(memory, "a")) for _ in range(8)], Socket(Peer(memory, "b"))
    await arrive(hostile, frame()[: FRAME - 1])
    await arrive([other], frame())
    assert not other.peer.sizes, "there is no room at all"
    await arrive([next(socket for socket in hostile if socket.reading)], frame()[-1:])
    await arrive([other], b"")
    assert other.peer.sizes == [FRAME], "the first room goes to who holds least, though others wait for longer"
    assert memory.crowded


@pytest.mark.rule("P12")
async def test_who_goes_away_gives_back_what_it_held_and_its_place_in_the_line() -> None:
    memory = ReceiveMemory(2 * FRAME)
    sockets = [Socket(Peer(memory, "a")) for _ in range(8)]
    await arrive(sockets, frame()[: FRAME - 1])
    crowded = [memory.crowded]
    for socket in sockets[:7]:
        socket.peer.connection_lost(None)
        await settle()
    assert [*crowded, memory.crowded] == [True, False]
    await arrive(sockets[7:], frame()[-1:])
    assert (sockets[7].peer.sizes, memory.held) == ([FRAME], 0)


class Waiter:
    """Notes what it gets."""

    def __init__(self, account: str) -> None:
        self.account = account
        self.got = 0

    def on_room(self, size: int) -> None:
        self.got = size


def test_one_at_a_time_gets_room_beyond_the_limit() -> None:
    memory = ReceiveMemory(10)
    first, second, third = Waiter("a"), Waiter("a"), Waiter("a")
    memory.charge(first, 8, rest=8)
    memory.wait(second, 5)
    memory.wait(third, 5)
    memory.validate_state()
    assert (second.got, third.got, memory.held) == (5, 0, 13)
    memory.charge(second, -5, rest=0)
    memory.validate_state()
    assert (third.got, memory.held) == (5, 13)
    memory.forget(third)
    memory.charge(third, -5, rest=0)
    memory.charge(first, -8, rest=0)
    assert (memory.held, memory.crowded, memory.peak) == (0, False, 13)
