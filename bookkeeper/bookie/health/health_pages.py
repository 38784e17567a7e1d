"""The pages /healthz, /livez, /readyz and /metrics: a WSGI application with Prometheus' page in it.

Numbers are read while the loop changes them: each is one plain int or float, which is as exact as a scrape can be.
Nothing here changes anything, echoes input, or shows a secret (X47, X49, X50, X53).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from io import BufferedIOBase
from typing import Any, Final, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from bookkeeper.bookie.health.health import PageReply
from bookkeeper.exposition import wsgi_page
from bookkeeper.ids import Address, is_loopback
from bookkeeper.metrics import Metrics

Health = Callable[[], dict[str, Any] | PageReply]
"""The content of a page. Its key ``status`` is "ok", or says what is wrong; then the response has code 503."""

HEAD_MAX: Final = 32 * 1024
"""Bytes of a request's line and headers at most; what is longer is cut, and the connection ends (X40)."""

_HEADERS = [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store")]


class _Head:
    """The lines of one request, as far as they are read: no page has a body."""

    def __init__(self, lines: Any) -> None:
        self._lines = lines
        self._left = HEAD_MAX
        self.close = lines.close

    def readline(self, size: int = 64 * 1024) -> bytes:
        """The next line.

        Raises: ConnectionError: the head is too long.
        """
        line: bytes = self._lines.readline(min(size, self._left + 1))
        self._left -= len(line)
        if self._left < 0:
            raise ConnectionError(f"the head of a request has more than {HEAD_MAX} bytes")
        return line

    def read(self, size: int = -1) -> bytes:
        """Nothing: there is no body."""
        return b""


class _Handler(WSGIRequestHandler):
    """Handles one HTTP request, without a log line and with a time limit."""

    timeout = 5

    def setup(self) -> None:
        super().setup()
        self.rfile = cast(BufferedIOBase, _Head(self.rfile))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Say what kind of error it is, and nothing of the request (X53)."""
        super().send_error(code, HTTPStatus(code).phrase, HTTPStatus(code).description)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's name
        """Log nothing: scrapes come all the time."""


class HealthPages(WSGIServer):
    """Answers connections that somebody else has accepted at ``address``: :meth:`finish_request`, in any thread."""

    def __init__(
        self, address: Address, health: Mapping[str, Health], metrics: Metrics, refresh: Callable[[], None]
    ) -> None:
        super().__init__((address.host, address.port), _Handler, bind_and_activate=False)
        self.socket.close()  # it has none of its own
        self.server_name, self.server_port = address.host, address.port
        self.setup_environ()
        self.set_app(_Application(health, wsgi_page(metrics, refresh), address.host))


class _Application:
    """The WSGI application with its routes."""

    def __init__(self, health: Mapping[str, Health], metrics: Callable[..., Iterable[bytes]], host: str) -> None:
        self._health = health
        self._metrics = metrics
        self._host = host

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return _plain(start_response, "405 Method Not Allowed")
        if not self._known_host(str(environ.get("HTTP_HOST", ""))):
            return _plain(start_response, "403 Forbidden")
        path = environ.get("PATH_INFO")
        if isinstance(path, str) and len(path) > 1:
            path = path.removesuffix("/")
        if path == "/metrics":
            return self._metrics(environ, start_response)
        if not isinstance(path, str) or path not in self._health:
            return _plain(start_response, "404 Not Found")
        state = self._health[path]()
        if isinstance(state, PageReply):
            return _reply(start_response, state)
        code = "200 OK" if state.get("status") == "ok" else "503 Service Unavailable"
        start_response(code, [("Content-Type", "application/json"), *_HEADERS])
        return [json.dumps(state).encode() + b"\n"]

    def _known_host(self, header: str) -> bool:
        """Whether the request's host is allowed. On loopback only names of loopback are: the name of a web page that
        resolves to loopback is refused (X49)."""
        if not is_loopback(self._host):
            return True
        host = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() else header
        return is_loopback(host.removeprefix("[").removesuffix("]"))


def _reply(start_response: Callable[..., Any], reply: PageReply) -> Iterable[bytes]:
    status = f"{reply.code} {HTTPStatus(reply.code).phrase}"
    if isinstance(reply.body, str):
        start_response(status, [("Content-Type", "text/plain"), *_HEADERS])
        return [reply.body.encode()]
    start_response(status, [("Content-Type", "application/json"), *_HEADERS])
    return [json.dumps(reply.body).encode() + b"\n"]


def _plain(start_response: Callable[..., Any], status: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain"), *_HEADERS])
    return [status.encode() + b"\n"]
