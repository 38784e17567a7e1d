"""Connections inside one process, without sockets: for tests, and for a cluster that lives in one program.

The two ends behave like asyncio's transports: connection_made, bytes, pause and resume of writing, the end. Bytes
arrive in pieces on a later turn of the loop, never inside a write. An end that pauses reading after a piece gets no
further piece until it reads again.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, cast

from bookkeeper.ids import Address
from bookkeeper.seams import Buffer, Listener, Tls, TlsFiles

P = TypeVar("P", bound=asyncio.BaseProtocol)

WINDOW: Final = 1024 * 1024
"""How many bytes may be on the way to a peer that does not read. Above it the sender is told to pause."""


PIECE: Final = 256 * 1024
"""Bytes delivered at once, as many as asyncio reads from a socket."""


class PairTransport(asyncio.Transport):
    """One end of a stream inside this process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BaseProtocol, name: Address) -> None:
        super().__init__({"sockname": tuple(name), "peername": ("in-process", 0)})
        self._loop = loop
        self._protocol = protocol
        self._peer: PairTransport
        self._inbox: deque[memoryview] = deque()
        self._waiting = 0
        """Bytes in it."""
        self._scheduled = False
        self._reading_paused = False
        self._writing_paused = False
        self._ended = False
        self._closing = False
        self._lost = False

    @classmethod
    def pair(
        cls, loop: asyncio.AbstractEventLoop, one: asyncio.BaseProtocol, other: asyncio.BaseProtocol, name: Address
    ) -> None:
        """Connect two protocol objects. Both ``connection_made`` are called now, that of ``other`` first."""
        first, second = cls(loop, one, name), cls(loop, other, name)
        first._peer, second._peer = second, first
        other.connection_made(second)
        one.connection_made(first)

    def is_closing(self) -> bool:
        return self._closing

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_reading(self) -> bool:
        return not self._reading_paused

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._wake()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def get_write_buffer_size(self) -> int:
        return self._peer._waiting

    def write(self, data: Buffer) -> None:
        if self._closing or not len(data):
            return
        peer = self._peer
        if peer._lost:  # as with a socket: the write succeeds and is lost
            return
        peer._inbox.append(memoryview(bytes(data)))
        peer._waiting += len(data)
        peer._wake()
        if peer._waiting > WINDOW and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._peer._ended = True
            self._peer._wake()
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        if not self._lost:
            self._closing = True
            peer = self._peer
            peer._drop()
            self._loop.call_soon(peer._lose, ConnectionResetError("reset by peer"))
            self._loop.call_soon(self._lose, None)

    def _wake(self) -> None:
        if not self._scheduled and not self._reading_paused and not self._lost:
            self._scheduled = True
            self._loop.call_soon(self._deliver)

    def _takes(self) -> bool:
        """Whether it may get bytes now. Asked before each piece, because its protocol may pause after any of them."""
        return not (self._reading_paused or self._closing or self._lost)

    def _deliver(self) -> None:
        self._scheduled = False
        while self._inbox and self._takes():
            try:
                self._hand_over(self._inbox[0])
            except Exception as error:  # like asyncio: report it and lose this end
                message = "a protocol failed while it received bytes from a stream inside this process: the stream ends"
                self._loop.call_exception_handler({"message": message, "exception": error, "transport": self})
                self._drop()
                self._loop.call_soon(self._lose, error)
                self.abort()
                return
        peer = self._peer
        if peer._writing_paused and self._waiting <= WINDOW // 2 and not peer._lost:
            peer._writing_paused = False
            self._loop.call_soon(peer._protocol.resume_writing)
        if self._ended and not self._inbox and self._takes():
            self._ended = False
            if not cast(asyncio.Protocol, self._protocol).eof_received():
                self.close()

    def _hand_over(self, data: memoryview) -> None:
        """Deliver the next piece of ``data``, which is the first in the inbox."""
        if isinstance(self._protocol, asyncio.BufferedProtocol):
            room = cast(memoryview, self._protocol.get_buffer(len(data)))
            n = min(len(room), len(data))
            room[:n] = data[:n]
            self._taken(n)
            self._protocol.buffer_updated(n)
        else:
            piece = bytes(data[:PIECE])
            self._taken(len(piece))
            cast(asyncio.Protocol, self._protocol).data_received(piece)

    def _taken(self, size: int) -> None:
        """Count ``size`` bytes out of the inbox. Called before the protocol gets them, because it may fail."""
        self._waiting -= size
        first = self._inbox.popleft()
        if size < len(first):
            self._inbox.appendleft(first[size:])

    def _drop(self) -> None:
        """Drop what is on its way."""
        self._inbox.clear()
        self._waiting = 0

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._drop()
            self._protocol.connection_lost(error)


class PairListener:
    """See :class:`bookkeeper.seams.Listener`."""

    def __init__(self, net: InProcessNet, address: Address) -> None:
        self._net = net
        self.address = address

    def close(self) -> None:
        self._net.listening.pop(self.address, None)


class InProcessNet:
    """The Net seam between all holders of this object. Addresses are only names."""

    def __init__(self) -> None:
        self.listening: dict[Address, Callable[[], asyncio.BaseProtocol]] = {}
        self._last_port = 0

    async def connect(
        self, address: Address, factory: Callable[[], P], *, timeout_s: float, tls: ssl.SSLContext | None = None
    ) -> P:
        """See :class:`bookkeeper.seams.Net`."""
        accept = self.listening.get(address)
        if accept is None:
            raise ConnectionRefusedError(f"nobody listens at {address}")
        protocol = factory()
        PairTransport.pair(asyncio.get_running_loop(), protocol, accept(), address)
        return protocol

    async def listen(
        self, address: Address, factory: Callable[[], asyncio.BaseProtocol], *, tls: ssl.SSLContext | None = None
    ) -> Listener:
        """See :class:`bookkeeper.seams.Net`."""
        if address.port == 0:
            self._last_port += 1
            address = Address(address.host, self._last_port)
        if address in self.listening:
            raise OSError(98, "Address already in use", str(address))
        self.listening[address] = factory
        return PairListener(self, address)

    def tls(self, files: TlsFiles) -> Tls | None:
        """None: these streams never leave the process, so nobody else can read them."""
        return None

    async def upgrade(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.BaseProtocol,
        tls: Tls,
        *,
        server_name: str | None,
        timeout_s: float,
    ) -> asyncio.Transport:
        """Never called, because :meth:`tls` returns None."""
        raise ConnectionAbortedError("streams inside one process are not encrypted")

    @property
    def tells_silence(self) -> bool:
        """No: nothing between the two ends can be lost."""
        return False

    def silence_s(self, transport: asyncio.BaseTransport) -> float | None:
        """None: what was sent has arrived."""
        return None
