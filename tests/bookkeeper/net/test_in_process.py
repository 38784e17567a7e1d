"""Streams inside one process behave as sockets do."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.ids import Address
from bookkeeper.net.in_process import InProcessNet


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


async def test_addresses_are_taken_once_and_given_back() -> None:
    net = InProcessNet()
    listener = await net.listen(Address("here", 5), Plain)
    with pytest.raises(OSError, match="in use"):
        await net.listen(Address("here", 5), Plain)
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        await net.connect(Address("here", 5), Plain, timeout_s=1)
