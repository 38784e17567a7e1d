"""The threads of the ZooKeeper library, with fewer hand-overs and fewer system calls for each request.

The library has a thread for its connection and one that calls whoever waits for an answer. What waits here only
enqueues onto a loop, and never blocks; so the connection's thread calls it at once. And what has arrived is taken from
the system in one piece: the library asks for the four bytes of a length and then for the rest, and waits before each.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

from bookkeeper.real import ready_sockets

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())

READ_AHEAD: Final = 16 * 1024
"""Bytes that are taken from the system at once."""


class ReadAheadSocket:
    """A connection that keeps what has arrived behind what was asked for; :meth:`pending` says that there is some.

    The library asks that of encrypted connections, and does not wait for what is pending.
    """

    __slots__ = ("_begin", "_chunk", "plain")

    def __init__(self, socket: Any) -> None:
        self.plain = socket
        """The socket below."""
        self._chunk = b""
        self._begin = 0
        """What was kept is ``_chunk[_begin:]``."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)  # what is not here is the socket's own

    def __enter__(self) -> ReadAheadSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.plain.close()

    def fileno(self) -> int:
        """The socket's descriptor; -1 when it is closed."""
        number: int = self.plain.fileno()
        return number

    def pending(self) -> int:
        """Bytes that can be had without asking the system."""
        kept = len(self._chunk) - self._begin
        if kept:
            return kept
        decrypted: Callable[[], int] | None = getattr(self.plain, "pending", None)
        return decrypted() if decrypted is not None else 0

    def recv(self, size: int) -> bytes:
        """At most ``size`` bytes; none when the other side has ended. Raises: OSError, as the socket."""
        begin, chunk = self._begin, self._chunk
        if begin == len(chunk):
            begin, chunk = 0, self.plain.recv(max(size, READ_AHEAD))
        self._begin = min(begin + size, len(chunk))
        if self._begin == len(chunk):
            self._begin, self._chunk = 0, b""
        else:
            self._chunk = chunk
        return chunk[begin : begin + size]


class Completions(queue.Queue[Any]):
    """Takes the calls for those who wait for answers, and makes them at once, on the thread that brings them.

    Whatever else is put ends the library's own thread for them.
    """

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Call ``item``. Its error is logged: the connection has nothing to do with it."""
        if not callable(item):
            super().put(item, block, timeout)
            return
        try:
            item()
        except Exception:
            _log.exception("what waited for an answer of ZooKeeper failed")


class Handler(SequentialThreadingHandler):  # type: ignore[misc]  # the library has no types
    """The client's threads and sockets. They wait for their sockets by one system call; the library's own way makes
    and closes a descriptor each time, three times for each request."""

    def __init__(self) -> None:
        super().__init__()
        self.completion_queue = Completions()

    def create_connection(self, *arguments: Any, **options: Any) -> ReadAheadSocket:
        """Connect. Raises: OSError."""
        return ReadAheadSocket(super().create_connection(*arguments, **options))

    def select(
        self, readers: Sequence[Any], writers: Sequence[Any], errors: Sequence[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """As ``select.select``; what is pending can be read. The library asks for no ``errors``. Raises: ValueError: a
        socket is closed."""
        pending = [each for each in readers if isinstance(each, ReadAheadSocket) and each.pending()]
        if not pending:
            return (*ready_sockets(readers, writers, timeout), [])
        readable, writable = ready_sockets(readers, writers, 0)
        return [each for each in readers if each in pending or each in readable], writable, []
