"""TCP, by the running asyncio (or uvloop) loop."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from bookkeeper.ids import Address
from bookkeeper.real.tls import FileTls
from bookkeeper.seams import Listener, Tls, TlsFiles

P = TypeVar("P", bound=asyncio.BaseProtocol)

BACKLOG: Final = 1024
"""Connections that may wait to be accepted."""

DEAD_S: Final = 120
"""Seconds after which a peer that answers nothing at all is taken for dead."""

PROBES: Final = 4
"""How often a silent peer is asked, in the second half of that time."""

AGAIN_MIN: Final = 4
"""What was sent so often again, each time after twice the pause, and never acknowledged, is not just late."""

_TCP_INFO: Final = struct.Struct("=BBBBBBBB4I2I5I2I")
"""The beginning of Linux's ``struct tcp_info``: the third number counts how often the same was sent again, the
thirteenth segments on their way, the last one milliseconds since anything was acknowledged."""

GOODBYE_S: Final = 2.0
"""Seconds for the peer's last word when an encrypted stream is closed."""


class TcpListener:
    """A listening socket of asyncio."""

    def __init__(self, server: asyncio.Server, address: Address) -> None:
        self._server = server
        self._address = address

    @property
    def address(self) -> Address:
        return self._address

    def close(self) -> None:
        self._server.close()


class AsyncioNet:
    """Streams over TCP. TCP_NODELAY and keep-alive are on, on both sides: frames leave at once, and a peer that is gone
    without a word (its machine, or the way to it) is noticed within ``DEAD_S`` seconds."""

    async def connect(
        self, address: Address, factory: Callable[[], P], *, timeout_s: float, tls: ssl.SSLContext | None = None
    ) -> P:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout_s):
            transport, protocol = await loop.create_connection(
                factory, address.host, address.port, ssl=tls, server_hostname=address.host if tls else None
            )
        _tune(transport)
        return protocol

    async def listen(
        self, address: Address, factory: Callable[[], asyncio.BaseProtocol], *, tls: ssl.SSLContext | None = None
    ) -> Listener:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            factory, address.host, address.port, ssl=tls, backlog=BACKLOG, reuse_address=True
        )
        for listening in server.sockets:
            notice_dead_peers(listening)  # what is accepted has the same options
        name = server.sockets[0].getsockname()
        return TcpListener(server, Address(address.host, name[1]))

    def tls(self, files: TlsFiles) -> Tls | None:
        """See :class:`bookkeeper.seams.Net`."""
        return FileTls(files)

    async def upgrade(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.BaseProtocol,
        tls: Tls,
        *,
        server_name: str | None,
        timeout_s: float,
    ) -> asyncio.Transport:
        """See :class:`bookkeeper.seams.Net`."""
        keys = cast(FileTls, tls)
        encrypted = await asyncio.get_running_loop().start_tls(
            transport,
            cast(asyncio.Protocol, protocol),
            keys.context,
            server_side=keys.files.server,
            server_hostname=None if keys.files.server else server_name,
            ssl_handshake_timeout=timeout_s,
            ssl_shutdown_timeout=GOODBYE_S,
        )
        if encrypted is None:  # both loops: the peer went away in the middle
            raise ConnectionResetError("the peer went away during the TLS handshake")
        return encrypted

    @property
    def tells_silence(self) -> bool:
        """See :class:`bookkeeper.seams.Net`."""
        return hasattr(socket, "TCP_INFO")

    def silence_s(self, transport: asyncio.BaseTransport) -> float | None:
        """See :class:`bookkeeper.seams.Net`. What the system itself would tell after ``DEAD_S``."""
        sock = transport.get_extra_info("socket")
        if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
            return None
        try:
            told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
        except (OSError, ValueError):  # closed meanwhile; what uvloop gives has no descriptor then
            return None
        if len(told) < _TCP_INFO.size:
            return None
        state = _TCP_INFO.unpack(told)
        if not state[12]:
            return None
        return state[-1] / 1000 if state[2] >= AGAIN_MIN else 0.0


def _tune(transport: asyncio.BaseTransport) -> None:
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        notice_dead_peers(sock)


def notice_dead_peers(sock: Any) -> None:
    """Ask a peer that is silent whether it is there, and give up one that does not answer, or acknowledges nothing.

    By itself the system asks after two hours, and goes on sending for a quarter of an hour.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, DEAD_S // 2)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, DEAD_S // 2 // PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * DEAD_S)
