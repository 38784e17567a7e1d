"""Frames in, bytes out: bounded memory, one write per turn of the loop, hostile peers."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from bookkeeper import real
from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import Address
from bookkeeper.net.frame_protocol import FrameProtocol
from bookkeeper.net.in_process import InProcessNet, PairTransport
from bookkeeper.seams import Net, Seams
from bookkeeper.testing import World

FRAME_MAX = 2 * 1024 * 1024


class Collector(FrameProtocol):
    """Takes whole frames."""

    def __init__(self) -> None:
        super().__init__(frame_max=FRAME_MAX)
        self.frames: list[bytes] = []
        self.calls = 0
        self.largest_buffer = 0
        self.ended: list[BaseException | None] = []
        self.take = True

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        self.calls += 1
        self.largest_buffer = max(self.largest_buffer, len(buffer))
        at = start
        while self.take and end - at >= 4:
            (length,) = struct.unpack_from(">I", buffer, at)
            if length == 0 or length + 4 > self.frame_max:
                raise MalformedFrameError(f"frame of {length} bytes")
            if end - at - 4 < length:
                break
            self.frames.append(bytes(buffer[at + 4 : at + 4 + length]))
            at += 4 + length
        return at - start

    def on_closed(self, error: BaseException | None) -> None:
        self.ended.append(error)


def frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


async def connected(net: Net) -> tuple[Collector, Collector]:
    accepted: list[Collector] = []

    def accept() -> Collector:
        accepted.append(Collector())
        return accepted[0]

    listener = await net.listen(Address("127.0.0.1", 0), accept)
    one = await net.connect(listener.address, Collector, timeout_s=5)
    while not accepted or accepted[0]._transport is None:  # noqa: ASYNC110  # on a later turn of the loop
        await asyncio.sleep(0)
    listener.close()
    return one, accepted[0]


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_all_that_is_written_in_one_turn_arrives_in_one_piece() -> None:
    one, other = await connected(InProcessNet())
    for i in range(10):
        one.write(frame(bytes([i])))
    assert one.unsent == 50
    assert not other.frames
    await settle()
    assert other.frames == [bytes([i]) for i in range(10)]
    assert (other.calls, one.sent_bytes, other.received_bytes, one.unsent) == (1, 50, 50, 0)


async def test_a_frame_larger_than_the_buffer_grows_it_and_it_shrinks_again() -> None:
    one, other = await connected(InProcessNet())
    body = bytes(range(256)) * 6000
    for _ in range(3):
        one.write(frame(body))
        await settle()
    assert other.frames == [body] * 3
    assert other.largest_buffer <= FRAME_MAX
    assert not other._kept, "nothing is kept for nothing"


@pytest.mark.rule("X30", "F12")
@pytest.mark.parametrize("bad", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x80\0\0\0rest", struct.pack(">I", FRAME_MAX)])
async def test_an_impossible_length_ends_the_connection_before_its_body_is_awaited(bad: bytes) -> None:
    one, other = await connected(InProcessNet())
    one.write(frame(b"fine") + bad)
    await settle()
    assert other.frames == [b"fine"]
    assert isinstance(other.ended[0], MalformedFrameError)
    assert one.ended == [None]
    assert not other._kept, "nothing is kept for nothing"


@pytest.mark.rule("X32", "P12")
async def test_who_does_not_read_makes_the_sender_feel_it() -> None:
    one, other = await connected(InProcessNet())
    other.pause_reading()
    body = bytes(1024 * 1024)
    one.write(frame(body))
    one.write(frame(body))
    await settle()
    assert (one.writable, other.received_bytes) == (False, 0)
    other.resume_reading()
    await settle()
    assert (one.writable, one.unsent) == (True, 0)
    assert len(other.frames) == 2


async def test_pauses_are_counted_and_what_is_in_the_buffer_comes_after_the_last_resume() -> None:
    one, other = await connected(InProcessNet())
    other.take = False
    one.write(frame(b"a"))
    await settle()
    assert not other.frames
    other.take = True
    other.pause_reading()
    other.pause_reading()
    other.resume_reading()
    await settle()
    assert not other.frames
    other.resume_reading()
    await settle()
    assert other.frames == [b"a"]


async def test_the_end_is_reported_once_with_its_reason() -> None:
    one, other = await connected(InProcessNet())
    error = RuntimeError("enough")
    one.write(frame(b"last words"))
    one.close(error)
    one.close()
    one.write(frame(b"never"))
    await settle()
    assert (one.ended, other.ended, other.frames) == ([error], [None], [b"last words"])
    one, other = await connected(InProcessNet())
    one.abort(error)
    await settle()
    assert one.ended == [error]
    assert isinstance(other.ended[0], ConnectionResetError)


@pytest.mark.parametrize("seed", range(5))
def test_frames_survive_any_cutting_of_the_stream(seed: int) -> None:
    with World(seed) as world:
        world.network.weather.split_share = 0.8
        got: list[Collector] = []

        def accept() -> Collector:
            got.append(Collector())
            return got[-1]

        async def serve(seams: Seams) -> None:
            await seams.net.listen(Address("server", 1), accept)

        bodies = [bytes([i % 251]) * (i * 997 % 9000 + 1) for i in range(300)]

        async def client(seams: Seams) -> None:
            one: Any = await seams.net.connect(Address("server", 1), Collector, timeout_s=5)
            for body in bodies:
                one.write(frame(body))
                if len(body) % 7 == 0:
                    await asyncio.sleep(0.001)
            one.close()
            await asyncio.sleep(5)

        world.node("server").start(serve)

        async def main() -> None:
            await asyncio.sleep(1)
            await world.node("client").start(client)

        world.run(main())
        assert got[0].frames == bodies
        assert got[0].ended == [None]


def test_frames_of_all_sizes_pass_a_real_socket_both_ways() -> None:
    bodies = [bytes([i]) * size for i, size in enumerate([1, 100, 70_000, 600_000, 1_900_000, 3])] * 3

    async def main() -> None:
        one, other = await connected(real.system_seams().net)
        for body in bodies:
            one.write(frame(body))
            other.write(frame(body))
        async with asyncio.timeout(20):
            while len(one.frames) < len(bodies) or len(other.frames) < len(bodies):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert one.frames == other.frames == bodies
        one.pause_reading()
        one.close()
        one.resume_reading()
        async with asyncio.timeout(5):
            while not other.ended:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    real.run(main())


@pytest.mark.rule("X32", "P12")
def test_back_pressure_over_a_real_socket() -> None:
    async def main() -> None:
        one, other = await connected(real.system_seams().net)
        other.pause_reading()
        chunk, sent = frame(bytes(1_000_000)), 0
        while one.writable and sent < 100:
            one.write(chunk)
            sent += 1
            await asyncio.sleep(0)
        assert sent < 100
        other.resume_reading()
        async with asyncio.timeout(20):
            while len(other.frames) < sent:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert one.writable
        one.abort()

    real.run(main())


@pytest.mark.rule("X32", "P12")
def test_pieces_of_frames_pass_a_socket_that_takes_a_part_of_them_at_a_time() -> None:
    """As a writer sends large entries: each payload by itself, behind the beginning of its frame."""
    bodies = [bytes([i % 256]) * (65_536 + i) for i in range(150)]  # more than the system keeps for a socket

    async def main() -> None:
        one, other = await connected(real.system_seams().net)
        other.pause_reading()
        for body in bodies:
            begin = frame(body)[:70]
            one.write(memoryview(begin))
            one.write(memoryview(body)[66:])
        whole = sum(len(body) + 4 for body in bodies)
        assert one.unsent == whole, "every piece counts"
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert 0 < one.unsent < whole, "the system has taken a part"
        other.resume_reading()
        async with asyncio.timeout(20):
            while len(other.frames) < len(bodies):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert other.frames == bodies and one.unsent == 0

        other.pause_reading()
        for body in bodies:
            one.write(frame(body)[:70])
            one.write(memoryview(body)[66:])
        await asyncio.sleep(0)
        other.abort()  # in the midst of them
        async with asyncio.timeout(20):
            while not one.ended:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert (len(one.ended), one.unsent) == (1, 0)
        one.write(b"more")
        assert one.unsent == 0, "nobody is there"

    real.run(main())


async def test_what_goes_alone_never_overtakes_what_was_written_before() -> None:
    one, other = await connected(InProcessNet())
    one._gathers = True  # as with uvloop
    one.write_alone(frame(b"at once"))
    assert (one.sent_bytes, one._out) == (11, []), "handed to the transport"
    one.write(frame(b"at the end of the turn"))
    one.write_alone(frame(b"behind it"))
    await settle()
    assert other.frames == [b"at once", b"at the end of the turn", b"behind it"]
    one._gathers = False
    one.write_alone(frame(b"a"))
    one.write_alone(frame(b"b"))
    assert one.unsent == 10, "this transport would send them one by one"
    one.close()
    one.write_alone(frame(b"too late"))
    await settle()
    assert other.frames[3:] == [b"a", b"b"]


def test_what_goes_alone_passes_a_real_socket() -> None:
    async def main() -> None:
        one, other = await connected(real.system_seams().net)
        bodies = [bytes([i % 256]) * (1 + i % 3) for i in range(100)] + [bytes(3_000_000 // 2)] * 4
        for number, body in enumerate(bodies):
            (one.write if number % 5 == 3 else one.write_alone)(frame(body))
            if number % 7 == 0:
                await asyncio.sleep(0)
        async with asyncio.timeout(20):
            while len(other.frames) < len(bodies):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert other.frames == bodies
        one.abort()

    real.run(main())


# -- going on encrypted (what is on the wire is for real/ and bookie/ to test) ---------------------------------


@pytest.mark.rule("X2")
async def test_while_it_is_being_encrypted_nothing_leaves_and_nothing_is_shown() -> None:
    one, other = await connected(InProcessNet())
    one._gathers = True
    shaken = asyncio.Event()

    async def encrypt(transport: asyncio.Transport) -> asyncio.Transport:
        await settle()
        assert other.frames == [b"in clear"], "what was written before leaves first"
        await shaken.wait()
        return transport

    async def caller() -> list[bytes]:
        await one.upgrade(encrypt)
        return list(one.frames)

    one.write(frame(b"in clear"))
    upgrade = asyncio.ensure_future(caller())
    await settle()
    one.write_alone(frame(b"meanwhile"))
    other.write(frame(b"answer"))
    await settle()
    assert (other.frames, one.frames) == ([b"in clear"], [])
    shaken.set()
    assert await upgrade == [], "the caller goes on before anything is shown"
    assert one.encrypted
    await settle()
    assert (other.frames, one.frames) == ([b"in clear", b"meanwhile"], [b"answer"])


@pytest.mark.rule("X32")
async def test_who_was_paused_before_or_during_it_stays_so() -> None:
    one, other = await connected(InProcessNet())

    paused: list[bool] = []

    class Encrypted(PairTransport):
        """Another transport than the one that was paused."""

        def pause_reading(self) -> None:
            paused.append(True)
            super().pause_reading()

    async def encrypt(transport: asyncio.Transport) -> asyncio.Transport:
        one.pause_reading()
        transport.__class__ = Encrypted
        return transport

    await one.upgrade(encrypt)
    assert paused == [True]
    other.write(frame(b"x"))
    await settle()
    assert one.reading_paused and one.frames == []
    one.resume_reading()
    await settle()
    assert one.frames == [b"x"]


@pytest.mark.rule("X2")
async def test_bytes_in_clear_that_came_before_are_not_taken_over() -> None:
    one, other = await connected(InProcessNet())
    other.write(frame(b"half a frame")[:-3])
    await settle()

    async def encrypt(transport: asyncio.Transport) -> asyncio.Transport:
        raise AssertionError("never begun")

    with pytest.raises(MalformedFrameError, match="unencrypted bytes"):
        await one.upgrade(encrypt)
    await settle()
    assert one.closed and other.closed


@pytest.mark.rule("X7")
@pytest.mark.parametrize("how", ["close", "abort"])
async def test_it_ends_in_the_middle_even_if_the_handshake_never_tells(how: str) -> None:
    one, other = await connected(InProcessNet())

    async def encrypt(transport: asyncio.Transport) -> asyncio.Transport:
        await asyncio.Event().wait()
        return transport

    upgrade = asyncio.ensure_future(one.upgrade(encrypt))
    await settle()
    getattr(one, how)(TimeoutError("too long"))
    await settle()
    assert (one.closed, [type(error) for error in one.ended]) == (True, [TimeoutError])
    assert other.closed
    upgrade.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upgrade
    assert len(one.ended) == 1


class _ReadsOnClose(asyncio.Transport):
    """As asyncio's TLS: ``close`` reads once more, also when it is called from ``on_bytes``."""

    def __init__(self, protocol: FrameProtocol) -> None:
        super().__init__()
        self._protocol = protocol
        self._closing = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True
        receive(self._protocol, b"more that came")


def receive(protocol: FrameProtocol, data: bytes) -> None:
    """Bytes as a transport hands them over."""
    while data:
        buffer = protocol.get_buffer(-1)
        size = min(len(buffer), len(data))
        buffer[:size] = data[:size]
        protocol.buffer_updated(size)
        data = data[size:]


class _ClosesInside(Collector):
    """Ends the connection while it looks at a frame, and then goes on looking."""

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        before = bytes(buffer[start:end])
        self.close()
        assert buffer[start:end] == before, "what is looked at must not be overwritten"
        return super().on_bytes(buffer, start, end)


@pytest.mark.parametrize("kept", [b"", frame(b"two")[:5]])
async def test_a_connection_that_is_ended_inside_of_a_read_is_read_no_more(kept: bytes) -> None:
    protocol = _ClosesInside()
    protocol.connection_made(_ReadsOnClose(protocol))
    receive(protocol, frame(b"one") + kept)
    receive(protocol, frame(b"three"))
    assert protocol.frames == [b"one"]
    protocol.connection_lost(None)
    assert protocol.ended == [None]
