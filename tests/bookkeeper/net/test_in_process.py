"""Streams inside one process behave as sockets do."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import InvariantError
from bookkeeper.ids import Address
from bookkeeper.net.in_process import InProcessNet
from bookkeeper.net.protocol import FrameProtocol


class Plain(asyncio.Protocol):
    def __init__(self) -> None:
        self.got = b""
        self.lost: list[Exception | None] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data

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


async def test_addresses_are_taken_once_and_given_back() -> None:
    net = InProcessNet()
    listener = await net.listen(Address("here", 5), Plain)
    with pytest.raises(OSError, match="in use"):
        await net.listen(Address("here", 5), Plain)
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        await net.connect(Address("here", 5), Plain, timeout_s=1)
