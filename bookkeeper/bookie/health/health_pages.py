"""The pages /healthz, /livez, /readyz and /metrics: a WSGI application with Prometheus' page in it.

Numbers are read while the loop changes them: each is one plain int or float, which is as exact as a scrape can be.
No page changes anything, echoes input, or shows a secret (X47, X49, X50, X53).

Where the port is that of the administration API (:mod:`bookkeeper.http_api`), every other path goes to that.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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

ApiFor = Callable[["PageRequest"], PageReply]
"""Answers what is no page. Called in the connection's thread."""

BODY_MAX: Final = 64 * 1024
"""Bytes of a request's body at most."""

HEAD_MAX: Final = 32 * 1024
"""Bytes of a request's line and headers at most; what is longer is cut, and the connection ends (X40)."""

_HEADERS = [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store")]


class BodyError(Exception):
    """A body that is not received."""

    def __init__(self, reply: PageReply) -> None:
        super().__init__(reply.body)
        self.reply = reply


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request to the API, of which only the head was received."""

    method: str
    path: str
    query: str
    token: str | None = field(repr=False)
    """What stands behind Bearer in its header Authorization."""
    host: str
    """The address that it comes from, without a port."""
    read_body: Callable[[], str | None]
    """Receives the body; None: there is none. Raises: BodyError."""
    password: str | None = field(default=None, repr=False)
    """What a browser has asked its user for: the password of its header Authorization, of the kind Basic."""


class _Head:
    """The lines of one request, as far as they are read, and then its body."""

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

    def read(self, size: int) -> bytes:
        """Bytes of the body, of which the caller knows how many there are."""
        found: bytes = self._lines.read(min(size, BODY_MAX))
        return found


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
        self,
        address: Address,
        health: Mapping[str, Health],
        metrics: Metrics,
        refresh: Callable[[], None],
        api: ApiFor | None = None,
    ) -> None:
        super().__init__((address.host, address.port), _Handler, bind_and_activate=False)
        self.socket.close()  # it has none of its own
        self.server_name, self.server_port = address.host, address.port
        self.setup_environ()
        self.set_app(_Application(health, wsgi_page(metrics, refresh), address.host, api))


class _Application:
    """The WSGI application with its routes."""

    def __init__(
        self,
        health: Mapping[str, Health],
        metrics: Callable[..., Iterable[bytes]],
        host: str,
        api: ApiFor | None = None,
    ) -> None:
        self._health = health
        self._metrics = metrics
        self._host = host
        self._api = api

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        reads = environ.get("REQUEST_METHOD") in ("GET", "HEAD")
        if not reads and self._api is None:
            return _plain(start_response, "405 Method Not Allowed")
        if not self._known_host(str(environ.get("HTTP_HOST", ""))):
            return _plain(start_response, "403 Forbidden")
        path = environ.get("PATH_INFO")
        if isinstance(path, str) and len(path) > 1:
            path = path.removesuffix("/")
        if path == "/metrics" and reads:
            return self._metrics(environ, _safely(start_response))
        if not isinstance(path, str) or path not in self._health or not reads:
            if self._api is not None and _is_elsewheres(environ):
                return _plain(start_response, "403 Forbidden")
            if self._api is not None:
                return _reply(start_response, self._api(_request(environ)))
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


def _safely(start_response: Callable[..., Any]) -> Callable[..., Any]:
    """The library's page has the headers of all others, too."""

    def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
        return start_response(status, [*headers, *_HEADERS], *more)

    return start


def _is_elsewheres(environ: Mapping[str, Any]) -> bool:
    """Whether a browser asks for a web page of another site, which could start long work here (X49). Somebody who
    follows a link to a page asks for himself."""
    if str(environ.get("HTTP_SEC_FETCH_SITE", "none")).lower() in ("none", "same-origin"):
        return False
    shows = environ.get("HTTP_SEC_FETCH_MODE") == "navigate" and environ.get("HTTP_SEC_FETCH_DEST") == "document"
    return not (shows and environ.get("REQUEST_METHOD") in ("GET", "HEAD"))


def _request(environ: Mapping[str, Any]) -> PageRequest:
    kind, _, shown = str(environ.get("HTTP_AUTHORIZATION", "")).strip().partition(" ")

    def read_body() -> str | None:
        if environ.get("HTTP_TRANSFER_ENCODING"):
            raise BodyError(PageReply(411, "send Content-Length: Transfer-Encoding is not supported"))
        length = str(environ.get("CONTENT_LENGTH") or "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > BODY_MAX:
            raise BodyError(PageReply(413, f"a body has at most {BODY_MAX} bytes"))
        size = int(length)
        received: bytes = environ["wsgi.input"].read(size) if size else b""
        if len(received) < size:
            raise BodyError(PageReply(400, "the body ends too early"))
        try:
            return received.decode() if size else None
        except UnicodeDecodeError:
            raise BodyError(PageReply(400, "the body is no UTF-8")) from None

    return PageRequest(
        method=str(environ.get("REQUEST_METHOD", "")),
        path=str(environ.get("PATH_INFO", "")),
        query=str(environ.get("QUERY_STRING", "")),
        token=shown.strip() if kind.lower() == "bearer" else None,
        password=_password(shown.strip()) if kind.lower() == "basic" else None,
        host=str(environ.get("REMOTE_ADDR", "")),
        read_body=read_body,
    )


def _password(shown: str) -> str | None:
    """What stands behind the colon; None: it is not encoded so."""
    try:
        return base64.b64decode(shown, validate=True).decode().partition(":")[2]
    except ValueError:
        return None


def _reply(start_response: Callable[..., Any], reply: PageReply) -> Iterable[bytes]:
    status = f"{reply.code} {HTTPStatus(reply.code).phrase}"
    headers = [*_HEADERS, ("WWW-Authenticate", "Bearer")] if reply.asks_for_token else _HEADERS
    headers = [*headers, *reply.headers]
    body = reply.body
    if isinstance(body, str):
        start_response(status, [("Content-Type", reply.content_type or "text/plain; charset=utf-8"), *headers])
        return [body.encode()]
    start_response(status, [("Content-Type", reply.content_type or "application/json"), *headers])
    return [json.dumps(body).encode() + b"\n"] if isinstance(body, dict | list) else body


def _plain(start_response: Callable[..., Any], status: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain"), *_HEADERS])
    return [status.encode() + b"\n"]
