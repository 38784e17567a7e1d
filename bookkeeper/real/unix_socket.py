"""Lines over a Unix socket: for commands to a process by those who may open its directory.

The socket has mode 0600: its owner, and root, may connect. Nobody else can, whatever the directory allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

from bookkeeper.errors import ConfigError

LINE_MAX: Final = 64 * 1024
"""Bytes of a request at most."""
PATH_MAX: Final = 107
"""Bytes of a socket's path at most; the system allows no more."""
CONNECTIONS_MAX: Final = 32
"""Connections at a time. One more is closed at once."""
PATIENCE_S: Final = 30.0
"""Seconds that a client has for its request, and for taking each line of the answer."""

T = TypeVar("T")
SendLine = Callable[[bytes], Awaitable[None]]
"""Sends one line."""


class UnixListener:
    """A listening Unix socket."""

    def __init__(self, server: asyncio.Server, path: str) -> None:
        self._server = server
        self._path = path

    def close(self) -> None:
        """Accept nothing more, and remove the socket. Idempotent."""
        self._server.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)


async def listen_unix(
    path: str,
    answer: Callable[[bytes, SendLine], Awaitable[None]],
    *,
    connections_max: int = CONNECTIONS_MAX,
    patience_s: float = PATIENCE_S,
) -> UnixListener:
    """Listen at ``path``. ``answer`` gets each connection's one request, and sends lines.

    What lies at the path is removed: whoever calls holds the lock of the directory.

    Raises:
        ConfigError: the path is too long for a socket.
        OSError: it cannot be made.
    """
    if len(os.fsencode(path)) > PATH_MAX:
        raise ConfigError(f"{path} is longer than {PATH_MAX} bytes, too long for a socket: choose a shorter directory")

    served: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def send(line: bytes) -> None:
            writer.write(line + b"\n")
            await _in_time(writer.drain(), patience_s)

        if len(served) >= connections_max:
            writer.close()
            return
        served.add(writer)
        try:
            with contextlib.suppress(ConnectionError, ValueError):  # it has gone, or sends no line
                if request := await _in_time(reader.readline(), patience_s):
                    await answer(request, send)
        finally:
            served.discard(writer)
            writer.close()

    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    bound = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        bound.bind(path)
    except BaseException:
        bound.close()
        raise
    finally:
        os.umask(before)
    return UnixListener(await asyncio.start_unix_server(serve, sock=bound, limit=LINE_MAX), path)


async def _in_time(work: Awaitable[T], patience_s: float) -> T:
    """Raises: ConnectionError: a client that takes longer is as good as gone."""
    try:
        async with asyncio.timeout(patience_s):
            return await work
    except TimeoutError:
        raise ConnectionResetError("it neither sends nor takes anything") from None


async def request_unix(path: str, request: bytes) -> AsyncIterator[bytes]:
    """Send one request line; yield the lines of the answer.

    Raises: OSError: nobody listens there, or this user may not connect.
    """
    reader, writer = await asyncio.open_unix_connection(path, limit=1 << 24)
    try:
        writer.write(request + b"\n")
        await writer.drain()
        while line := await reader.readline():
            yield line.rstrip(b"\n")
    finally:
        writer.close()
