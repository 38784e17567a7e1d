"""Streams inside one process behave as sockets do."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import InvariantError, MalformedFrameError
from bookkeeper.ids import Address
from bookkeeper.net.frame_protocol import FrameProtocol
from bookkeeper.net.in_process import WINDOW, InProcessNet
from bookkeeper.net.receive_memory import RECEIVE_BUFFER


class Plain(asyncio.Protocol):
    def __init__(self) -> None:
        self.got = b""
        self.lost: list[Exception | None] = []
        self.paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


async def test_bytes_come_later_in_order_and_the_end_after_them() -> None:
    net = InProcessNet()
    accepted: list[Plain] = []

    def accept() -> Plain:
        accepted.append(Plain())
        return accepted[-1]

    listener = await net.listen(Address("here", 0), accept)
    one = await net.connect(listener.address, Plain, timeout_s=1)
    one.transport.write(b"a")
    one.transport.writelines([b"b", b"c"])
    assert accepted[0].got == b"", "bytes came inside write"
    one.transport.close()
    for _ in range(10):
        await asyncio.sleep(0)
    assert (accepted[0].got, accepted[0].lost, one.lost) == (b"abc", [None], [None])


@pytest.mark.rule("B13")
async def test_who_fails_in_what_it_was_given_is_lost_and_given_nothing_twice() -> None:
    """A connection of ours that fails keeps its bytes: the next ones would have them looked at again."""

    class Failing(FrameProtocol):
        seen = 0
        reason: BaseException | None = None

        def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
            self.seen += end - start
            raise InvariantError("W8 does not hold")

        def on_closed(self, error: BaseException | None) -> None:
            self.reason = error

    net, failing = InProcessNet(), Failing()
    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    await net.listen(Address("here", 1), lambda: failing)
    one = await net.connect(Address("here", 1), Plain, timeout_s=1)
    one.transport.write(b"a")
    one.transport.write(b"b")
    for _ in range(10):
        await asyncio.sleep(0)
    one.transport.write(b"c")
    for _ in range(10):
        await asyncio.sleep(0)
    assert failing.seen == 1 and failing.closed and isinstance(failing.reason, InvariantError)
    assert [type(lost) for lost in one.lost] == [ConnectionResetError] and len(told) == 1


class Sipping(asyncio.BufferedProtocol):
    """Takes 4 bytes at a time and stops reading after 8, until it is told to go on."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.ended = False
        self._room = bytearray(4)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        assert self.transport.is_reading(), "given bytes while it does not read"
        return memoryview(self._room)

    def buffer_updated(self, nbytes: int) -> None:
        self.got += self._room[:nbytes]
        if len(self.got) == 8:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        assert self.transport.is_reading(), "told of the end while it does not read"
        self.ended = True
        return False


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_who_stops_reading_in_the_middle_of_one_write_gets_the_rest_when_it_reads_again() -> None:
    """The stream looked whether its peer reads before each write's bytes, not before each piece of them: a connection
    that had enough went on being filled until its buffer could not grow any more."""
    net, sipping = InProcessNet(), Sipping()
    await net.listen(Address("here", 1), lambda: sipping)
    one = await net.connect(Address("here", 1), Plain, timeout_s=1)
    one.transport.write(b"0123456789abcdef")
    one.transport.close()
    await turns()
    assert (bytes(sipping.got), sipping.ended) == (b"01234567", False)
    sipping.transport.resume_reading()
    await turns()
    assert (bytes(sipping.got), sipping.ended) == (b"0123456789abcdef", True)


async def test_what_is_not_read_stays_with_its_sender() -> None:
    net, sipping = InProcessNet(), Sipping()
    await net.listen(Address("here", 1), lambda: sipping)
    one = await net.connect(Address("here", 1), Plain, timeout_s=1)
    one.transport.write(bytes(2 * WINDOW))
    assert one.paused, "more than the window is on its way"
    await turns()
    assert one.paused and one.transport.get_write_buffer_size() == 2 * WINDOW - 8
    sipping.got.clear()
    sipping.transport.abort()
    one.transport.write(bytes(WINDOW))
    await turns()
    assert one.transport.get_write_buffer_size() == 0, "kept for somebody who is gone"


async def test_who_ends_its_side_in_the_middle_of_one_write_gets_nothing_more() -> None:
    """As with a socket. A connection that has refused a frame must not be shown what came behind it."""

    class Refusing(FrameProtocol):
        seen = 0

        def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
            self.seen += end - start
            raise MalformedFrameError("no frame")

    net, refusing = InProcessNet(), Refusing()
    await net.listen(Address("here", 1), lambda: refusing)
    one = await net.connect(Address("here", 1), Plain, timeout_s=1)
    one.transport.write(bytes(RECEIVE_BUFFER + 1))
    await turns()
    assert refusing.seen == RECEIVE_BUFFER and refusing.closed and one.lost == [None]


async def test_addresses_are_taken_once_and_given_back() -> None:
    net = InProcessNet()
    listener = await net.listen(Address("here", 5), Plain)
    with pytest.raises(OSError, match="in use"):
        await net.listen(Address("here", 5), Plain)
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        await net.connect(Address("here", 5), Plain, timeout_s=1)
