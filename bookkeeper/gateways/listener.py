"""The gateway's port: it counts each connection, and then hands it to the HTTP library.

asyncio's own servers make a protocol and begin the TLS handshake for every accepted connection without a callback, so
neither could be limited. This listener accepts sockets itself and gives them to the loop one by one
(``connect_accepted_socket``, the same on asyncio and uvloop), each with the current TLS context.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from bookkeeper.errors import in_words
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.connection_limits import ConnectionTable
from bookkeeper.ids import Address
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.real import notice_dead_peers
from bookkeeper.seams import Clock

logger = logging.getLogger(__name__)

BACKLOG: Final = 1024
"""Connections that may wait to be accepted."""

AT_ONCE: Final = 64
"""How many connections are accepted in one turn of the loop."""

PAUSE_S: Final = 1.0
"""Seconds without accepting after the system had no descriptors left."""

_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

_ADVICE: Final = {
    errno.EADDRINUSE: "; end the program that listens there, or choose another port",
    errno.EACCES: "; ports below 1024 are reserved for the administrator: choose another port",
    errno.EADDRNOTAVAIL: "; this machine does not have that address",
}

Factory = Callable[[int], asyncio.Protocol]
"""Makes the protocol of a connection, given the connection's number."""


class BoundSockets:
    """Sockets that listen. Clients wait until :class:`CountedListener` accepts them.

    So a process can take its address before it begins anything else.
    """

    def __init__(self, sockets: list[socket.socket]) -> None:
        self._sockets = sockets
        name = sockets[0].getsockname()
        self.address = Address(name[0], name[1])
        """The address (port 0 resolved)."""

    def take(self) -> list[socket.socket]:
        """Hand the sockets over. The caller closes them."""
        sockets, self._sockets = self._sockets, []
        return sockets

    def close(self) -> None:
        """Close the sockets; clients that wait are cut off. Idempotent."""
        for listening in self.take():
            listening.close()


async def bind(listen: Address) -> BoundSockets:
    """Listen at the address.

    Raises:
        CannotListenError: the address cannot be used; the text says why.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            listen.host or None, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise CannotListenError(error.errno, f"cannot listen at {listen}: {error.strerror or error}") from error
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, place in dict.fromkeys(found):
            sockets.append(_bound(family, kind, protocol, place))
    except BaseException:
        for each in sockets:
            each.close()
        raise
    return BoundSockets(sockets)


class CannotListenError(OSError):
    """The process cannot listen at the address. The text is a sentence for the user."""

    def __str__(self) -> str:
        return str(self.strerror)


class CountedListener:
    """Accepts connections, counts them and limits them, until it is closed."""

    def __init__(
        self, factory: Factory, limits: ConnectionLimits, clock: Clock, tls: Callable[[], ssl.SSLContext] | None = None
    ) -> None:
        """``tls`` returns the context for the next handshake; None for no TLS. The protocols call :meth:`ended`."""
        self._factory = factory
        self._limits = limits
        self._tls = tls
        self._connections = ConnectionTable(limits)
        self._sockets: list[socket.socket] = []
        self._arrivals: dict[int, asyncio.Task[None]] = {}
        """Connections whose protocol has not been made yet."""
        self._paused: asyncio.TimerHandle | None = None
        self._last = 0
        self._log = RateLimitedLogger(logger, clock.monotonic)
        self._failed = RateLimitedLogger(logger, clock.monotonic)
        self.refused = 0
        """Connections that were closed because a limit was reached."""

    @property
    def connections(self) -> int:
        return len(self._connections)

    @property
    def handshakes(self) -> int:
        return self._connections.handshakes

    async def start(self, listen: Address | BoundSockets) -> Address:
        """Begin to accept; return the address (port 0 resolved).

        Raises:
            CannotListenError: the address cannot be listened at.
        """
        bound = listen if isinstance(listen, BoundSockets) else await bind(listen)
        self._sockets = bound.take()
        for listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)
        return bound.address

    def ended(self, number: int) -> None:
        """Count a connection as gone."""
        self._connections.leave(number)

    def close(self) -> None:
        """Accept nothing more, and end handshakes. Established connections stay. Idempotent."""
        self._stop_accepting()
        if self._paused is not None:
            self._paused.cancel()
            self._paused = None
        for listening in self._sockets:
            listening.close()
        self._sockets.clear()
        for task in self._arrivals.values():
            task.cancel()

    # -- accepting -------------------------------------------------------------------------------------

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, place = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._failed.warning("cannot accept a connection: %s", in_words(error))
                if error.errno in _EXHAUSTED:
                    self._stop_accepting()
                    self._paused = asyncio.get_running_loop().call_later(PAUSE_S, self._go_on)
                return
            self._arrived(connection, str(place[0]))

    def _stop_accepting(self) -> None:
        for listening in self._sockets:
            asyncio.get_running_loop().remove_reader(listening)

    def _go_on(self) -> None:
        self._paused = None
        for listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _arrived(self, connection: socket.socket, host: str) -> None:
        self._last += 1
        number = self._last
        verdict = self._connections.arrive(number, host, shakes=self._tls is not None)
        if verdict.refused is not None:
            connection.close()
            self._turned_away(host, verdict.refused)
            return
        if verdict.gives_way is not None:
            self._arrivals[verdict.gives_way].cancel()
            self._turned_away(
                "another address", "too many TLS handshakes are in progress, and another address has fewer"
            )
        connection.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._hand_over(connection, number), name="gateway connection")
        self._arrivals[number] = task
        task.add_done_callback(lambda done: self._settled(done, connection, number))

    def _settled(self, done: asyncio.Task[None], connection: socket.socket, number: int) -> None:
        """Settle a connection here, because a task cancelled before its first step has done nothing."""
        del self._arrivals[number]
        if not done.cancelled() and done.exception() is None:
            self._connections.shaken(number)
            return
        self._connections.leave(number)
        connection.close()
        if not done.cancelled():
            logger.debug("a connection failed before its first request: %s", done.exception())

    def _turned_away(self, host: str, reason: str) -> None:
        self.refused += 1
        self._log.warning("a connection from %s is closed: %s", host, reason)

    async def _hand_over(self, connection: socket.socket, number: int) -> None:
        """Make the protocol, after the TLS handshake if there is one. Raises OSError if that failed."""
        tls = None if self._tls is None else self._tls()
        timeout_s = None if tls is None else self._limits.handshake_s
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: self._factory(number), connection, ssl=tls, ssl_handshake_timeout=timeout_s
        )


def _bound(family: int, kind: int, protocol: int, place: tuple[object, ...]) -> socket.socket:
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setblocking(False)
        notice_dead_peers(listening)  # what is accepted has the same options
        listening.bind(place)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        text = f"cannot listen at {place[0]}:{place[1]}: {error.strerror}{_ADVICE.get(error.errno or 0, '')}"
        raise CannotListenError(error.errno, text) from error
    return listening
