"""The port is there at once; what it shows is loaded when somebody asks."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from bookkeeper.bookie.health.health import PageReply
from bookkeeper.bookie.health.health_pages import PageRequest
from bookkeeper.bookie.health.health_server import CONNECTIONS_MAX, THREADS_MAX, HealthServer
from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.metrics import Metrics
from bookkeeper.real.workers import ThreadWorker

ANY = Address("127.0.0.1", 0)


@pytest.fixture
def worker() -> Iterator[ThreadWorker]:
    loop = asyncio.new_event_loop()
    made = ThreadWorker("http", loop)
    yield made
    made.close()
    loop.close()


def start(address: Address, worker: ThreadWorker, refreshed: list[int] | None = None) -> HealthServer:
    metrics, count = Metrics("bookie_"), refreshed if refreshed is not None else []
    gauge = metrics.gauge("refreshes")

    def refresh() -> None:
        count.append(1)
        gauge.value = len(count)

    return HealthServer.start(address, {"/healthz": lambda: {"status": "ok"}}, metrics, refresh, worker)


def get(address: Address, path: str) -> str:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=30 * stretch())
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def test_numbers_are_brought_up_to_date_by_whoever_asks_for_them(worker: ThreadWorker) -> None:
    refreshed: list[int] = []
    server = start(ANY, worker, refreshed)
    try:
        assert refreshed == []
        assert "bookie_refreshes 1.0" in get(server.address, "/metrics")
        assert "bookie_refreshes 2.0" in get(server.address, "/metrics")
    finally:
        server.close()


def test_an_address_that_is_taken_is_an_error_and_a_closed_server_lets_go_of_its_own(worker: ThreadWorker) -> None:
    loop = asyncio.new_event_loop()
    second = ThreadWorker("second", loop)
    server = start(ANY, worker)
    with pytest.raises(OSError, match="in use"):
        start(server.address, second)
    server.close()
    server.close()
    again = start(server.address, ThreadWorker("third", loop))
    assert "ok" in get(again.address, "/healthz")
    again.close()
    loop.close()


CHILD = """
import asyncio, sys, urllib.request
from bookkeeper.bookie.health.health_server import CONNECTIONS_MAX, HealthServer
from bookkeeper.ids import Address
from bookkeeper.metrics import Metrics
from bookkeeper.real.workers import ThreadWorker
loop = asyncio.new_event_loop()
server = HealthServer.start(
    Address("127.0.0.1", 0),
    {"/healthz": lambda: {"status": "ok"}},
    Metrics("x"),
    lambda: None,
    ThreadWorker("http", loop),
)
heavy = {"prometheus_client", "http.server", "wsgiref"}
print(sorted(heavy & sys.modules.keys()), server.address.port > 0)
urllib.request.urlopen(f"http://{server.address}/metrics").read()
print(sorted(heavy & sys.modules.keys()))
server.close()
loop.close()
"""


def test_the_libraries_are_loaded_by_the_first_who_asks() -> None:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60 * stretch())
    assert done.stdout.splitlines() == ["[] True", "['http.server', 'prometheus_client', 'wsgiref']"], done.stderr


@pytest.mark.rule("X34")
def test_connections_that_say_nothing_take_a_few_threads_and_keep_nobody_out(
    worker: ThreadWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every connection had a thread of its own, however many there were: thousands took hundreds of megabytes. And each
    that said nothing in time printed a traceback."""
    server = start(ANY, worker)
    silent = [socket.create_connection(server.address, timeout=30 * stretch()) for _ in range(CONNECTIONS_MAX * 3)]
    try:
        assert "ok" in get(server.address, "/healthz")
        serving = sum(each.name.startswith("Thread-") for each in threading.enumerate())
        assert serving <= CONNECTIONS_MAX + 8, "those that were ended may still be on their way out"
        assert silent[0].recv(1) == b"", "the oldest were ended"
        silent[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        silent.pop().close()  # with a reset
        assert "ok" in get(server.address, "/healthz")
        assert capsys.readouterr().err == ""
    finally:
        for each in silent:
            each.close()
        server.close()


@pytest.mark.rule("X34")
def test_the_address_with_most_connections_gives_way(worker: ThreadWorker) -> None:
    """Cause: the oldest connection gave way to a newer one, so whoever opened many ended the answers to others."""
    asked, go_on = threading.Event(), threading.Event()

    def slow(request: PageRequest) -> PageReply:
        asked.set()
        go_on.wait(60 * stretch())
        return PageReply(200, "the whole answer")

    server = HealthServer.start(ANY, {}, Metrics("x"), lambda: None, worker, slow)
    silent: list[socket.socket] = []
    with socket.create_connection(server.address, 60 * stretch(), ("127.0.0.2", 0)) as patient:
        patient.sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert asked.wait(60 * stretch())
        try:
            for _ in range(CONNECTIONS_MAX * 2):
                silent.append(socket.create_connection(server.address, 60 * stretch()))
            assert silent[0].recv(1) == b"", "one of the many was ended"
            go_on.set()
            assert b"the whole answer" in b"".join(iter(lambda: patient.recv(4096), b""))
        finally:
            go_on.set()
            for each in silent:
                each.close()
            server.close()


@pytest.mark.rule("X34")
def test_threads_that_wait_for_an_answer_are_few_though_their_connections_are_gone(worker: ThreadWorker) -> None:
    """Cause: a closed connection was not counted any more, and its thread waited on: a client that was refused late
    made as many threads as it opened connections meanwhile."""
    counted, go_on, inside = threading.Lock(), threading.Event(), [0]
    full = threading.Event()

    def stuck(request: PageRequest) -> PageReply:
        with counted:
            inside[0] += 1
            if inside[0] == THREADS_MAX:
                full.set()
        go_on.wait(60 * stretch())
        return PageReply(200, "late")

    server = HealthServer.start(ANY, {}, Metrics("x"), lambda: None, worker, stuck)
    opened: list[socket.socket] = []
    try:
        for number in range(THREADS_MAX + 1):
            if number == THREADS_MAX:
                assert full.wait(60 * stretch())
            opened.append(socket.create_connection(server.address, 60 * stretch()))
            with contextlib.suppress(ConnectionError):
                opened[-1].sendall(b"GET /stuck HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert opened[-1].recv(1) == b"", "one more is closed at once"
        assert inside[0] == THREADS_MAX
        go_on.set()
        while b"late" not in _answer(server.address):  # threads end, and there is room again
            pass
    finally:
        go_on.set()
        for each in opened:
            each.close()
        server.close()


def _answer(address: Address) -> bytes:
    with socket.create_connection(address, 60 * stretch()) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"GET /stuck HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(4096), b""))
    return b""
