"""The port of /healthz, /livez, /readyz and /metrics, served by threads of its own.

The bookie takes the port when it starts, because the port is part of its registration. The first request loads the
pages (:mod:`~bookkeeper.bookie.health.health_pages`) with the HTTP and metrics libraries: a start does not wait for
them.
"""

from __future__ import annotations

import contextlib
import logging
import socketserver
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from bookkeeper.ids import Address, counted_address
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Worker

if TYPE_CHECKING:
    from bookkeeper.bookie.health.health_pages import ApiFor, Health, HealthPages


log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 32
"""Connections at a time, each with a thread. One more closes the oldest of the address that has most: a page takes
milliseconds."""

THREADS_MAX: Final = 2 * CONNECTIONS_MAX
"""Threads at a time, with those whose connection is closed and that are not at their end: one may wait for an answer.
While there are so many a new connection is closed at once."""

HANDSHAKE_S: Final = 5.0
"""Seconds that a client may be silent in a handshake of TLS."""


class HealthServer:
    """Serves until closed. Made with :meth:`start`."""

    def __init__(self, port: _Port, worker: Worker) -> None:
        self._port = port
        self._worker = worker
        self.address = port.address

    @classmethod
    def start(
        cls,
        address: Address,
        health: Mapping[str, Health],
        metrics: Metrics,
        refresh: Callable[[], None],
        worker: Worker,
        api: ApiFor | None = None,
        secure: Callable[[Any], Any] | None = None,
    ) -> HealthServer:
        """Listen at ``address`` and serve in ``worker``, which ends with it.

        Args:
            health: what is shown by route.
            refresh: brings ``metrics`` up to date.
            api: answers everything else; None: there is nothing else.
            secure: makes a connection one over TLS, in its thread; None: it stays as it is.

        Raises:
            OSError: the address cannot be had.
        """
        try:
            port = _Port(address, health, metrics, refresh, api, secure)
        except BaseException:
            worker.close()
            raise
        worker.submit(lambda: port.serve_forever(poll_interval=0.05), lambda result, error: None)
        return cls(port, worker)

    def close(self) -> None:
        """Stop. Idempotent."""
        self._port.shutdown()
        self._port.server_close()
        self._worker.close()


class _Port(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Accepts connections. Each has a thread, which ends with the process at the latest."""

    allow_reuse_address = True
    request_queue_size = 128
    daemon_threads = True

    def __init__(
        self,
        address: Address,
        health: Mapping[str, Health],
        metrics: Metrics,
        refresh: Callable[[], None],
        api: ApiFor | None,
        secure: Callable[[Any], Any] | None,
    ) -> None:
        self._secure = secure
        self._shown = (health, metrics, refresh, api)
        self._open: dict[Any, str] = {}
        """Connections that are served, the oldest first, with the addresses that count for them."""
        self._served: dict[int, None] = {}
        """Connections that have a thread, also those that are closed; by what each is in memory."""
        super().__init__((address.host, address.port), socketserver.BaseRequestHandler)
        self.address = Address(address.host, self.server_address[1])

    @cached_property
    def _pages(self) -> HealthPages:
        from bookkeeper.bookie.health.health_pages import HealthPages  # two libraries: see the module

        return HealthPages(self.address, *self._shown)

    def process_request(self, request: Any, client_address: Any) -> None:
        host = counted_address(str(client_address[0]))
        if len(self._open) >= CONNECTIONS_MAX:
            with contextlib.suppress(OSError, KeyError, ValueError, RuntimeError):  # it is ending by itself
                gives_way = self._oldest_of_most(host)
                del self._open[gives_way]
                gives_way.shutdown(2)  # both ways
        if len(self._served) >= THREADS_MAX:
            super().shutdown_request(request)
            return
        self._served[id(request)] = None
        self._open[request] = host
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._served.pop(id(request), None)

    def _oldest_of_most(self, newcomer: str) -> Any:
        """The oldest connection of the address that has most, the new one counted."""
        hosts = [newcomer, *self._open.values()]
        most = max(self._open.values(), key=hosts.count)
        return next(request for request, host in list(self._open.items()) if host == most)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log at level DEBUG: a client that is too slow, or goes away, is no error."""
        log.debug("a connection to the health port ended early", exc_info=True)

    def shutdown_request(self, request: Any) -> None:
        self._open.pop(request, None)
        super().shutdown_request(request)

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self._secure is None:
            self._pages.finish_request(request, client_address)
            return
        request.settimeout(HANDSHAKE_S)
        with self._secure(request) as secured:  # from here on it has the descriptor, and the former nothing
            self._open[secured] = self._open.pop(request, counted_address(str(client_address[0])))
            try:
                self._pages.finish_request(secured, client_address)
            finally:
                self._open.pop(secured, None)
