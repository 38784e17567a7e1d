"""/healthz and /metrics, over real HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.ids import Address
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
