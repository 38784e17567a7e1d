"""/healthz and /metrics, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from bookkeeper.bookie.health.health_pages import HEAD_MAX
from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.metrics import Metrics
from bookkeeper.real.workers import ThreadWorker

STATE: dict[str, Any] = {}


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics("bookie_")
    made.counter("adds_total", "Adds.").add(5)
    made.counter("requests_total", "Requests.", op="read", status="OK").add(2)
    made.gauge("writable").value = 1
    made.histogram("seconds", bounds_are="default").observe(0.002, 3)
    return made


@pytest.fixture
def server(metrics: Metrics) -> Iterator[HealthServer]:
    STATE.clear()
    STATE["status"] = "ok"
    loop = asyncio.new_event_loop()
    worker = ThreadWorker("http", loop)
    made = HealthServer.start(Address("127.0.0.1", 0), {"/healthz": lambda: STATE}, metrics, lambda: None, worker)
    yield made
    made.close()
    worker.close()
    loop.close()


def get(server: HealthServer, path: str, *, method: str = "GET", host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(server.address.host, server.address.port, timeout=5)
    try:
        connection.request(method, path, headers={"Host": host} if host else {})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_health_is_ok_or_says_why_not(server: HealthServer) -> None:
    status, body = get(server, "/healthz")
    assert (status, json.loads(body)) == (200, {"status": "ok"})
    STATE["status"] = "failed"
    assert get(server, "/healthz")[0] == 503


def test_metrics_are_in_prometheus_text(server: HealthServer) -> None:
    status, body = get(server, "/metrics")
    assert status == 200
    assert "bookie_adds_total 5.0" in body
    assert 'bookie_requests_total{op="read",status="OK"} 2.0' in body
    assert 'bookie_seconds_bucket{bounds_are="default",le="0.0025"} 3.0' in body
    assert "bookie_writable 1.0" in body


@pytest.mark.rule("X49")
def test_a_browser_takes_no_page_for_another_kind_and_keeps_none(server: HealthServer) -> None:
    """Cause: the page of metrics, which names what clients have named, came without these headers."""
    for path in ("/healthz", "/metrics", "/nowhere"):
        connection = http.client.HTTPConnection(server.address.host, server.address.port, timeout=5 * stretch())
        connection.request("GET", path)
        headers = connection.getresponse().headers
        connection.close()
        assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store"), path


@pytest.mark.rule("X49", "X53", "X50", "X47")
def test_everything_else_is_refused_without_an_echo(server: HealthServer) -> None:
    for path in ("/", "/secret", "/metrics/../etc/passwd"):
        status, body = get(server, path)
        assert status == 404
        assert path not in body or path == "/"
    assert get(server, "/metrics", method="POST")[0] == 405
    assert get(server, "/metrics", host="evil.example:80")[0] == 403
    assert get(server, "/metrics", host="localhost")[0] == 200
    assert get(server, "/metrics", host="[::1]:80")[0] == 200


def _raw(server: HealthServer, request: bytes) -> bytes:
    """All that is answered until the connection ends, be it by a reset: the server reads no more."""
    answer = b""
    to = (server.address.host, server.address.port)
    with socket.create_connection(to, timeout=30 * stretch()) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(request)
        while data := connection.recv(64 * 1024):
            answer += data
    return answer


@pytest.mark.rule("X40")
def test_a_head_that_is_too_long_is_not_kept(server: HealthServer) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    fits = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 1000) for number in range(30))
    assert b" 200 OK" in _raw(server, head + fits + b"\r\n")
    assert _raw(server, head + fits + fits + b"\r\n") == b""
    assert _raw(server, head + b"X: " + b"a" * HEAD_MAX + b"\r\n\r\n") == b""


@pytest.mark.rule("X53")
@pytest.mark.parametrize("line", [b"PLANTED", b"PLANTED a b c", b"GET /healthz HTTP/PLANTED", b"PLANTED / HTTP/1.0"])
def test_an_error_page_has_nothing_of_the_request(server: HealthServer, line: bytes) -> None:
    answer = _raw(server, line + b"\r\nHost: localhost\r\n\r\n")
    assert b"PLANTED" not in answer
    assert b"40" in answer.splitlines()[0] or b"Error code: 40" in answer
