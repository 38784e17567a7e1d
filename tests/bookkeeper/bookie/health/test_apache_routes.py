"""What Apache's probes hear from a bookie of ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bookkeeper.bookie.health.apache_routes import ROUTES, HealthSnapshot
from bookkeeper.bookie.health.health import BookieHealth
from bookkeeper.bookie.health.health_pages import _Application
from bookkeeper.http_api.routes import ROUTES as ALL_ROUTES
from bookkeeper.seams import Space

WELL = BookieHealth(
    bookie_id="b1",
    boot=1,
    running=True,
    disk="writable",
    failed=False,
    read_only=False,
    registered=True,
    metadata="connected",
    without_metadata_s=None,
)
SEEN = HealthSnapshot(WELL, Space(1000, 400), compacting=True, compactions=3, suspended=False)

REPLIES = {
    "/heartbeat": "OK\n",
    "/api/v1/bookie/is_ready": "OK",
    "/api/v1/bookie/state": {
        "running": True,
        "readOnly": False,
        "shuttingDown": False,
        "availableForHighPriorityWrites": True,
    },
    "/api/v1/bookie/state/readonly": {"readOnly": False},
    "/api/v1/bookie/sanity": {"passed": True, "readOnly": False},
    "/api/v1/bookie/info": {"freeSpace": 400, "totalSpace": 1000},
    "/api/v1/bookie/gc": {"is_in_force_gc": "true"},
    "/api/v1/bookie/gc_details": [
        {
            "forceCompacting": False,
            "majorCompacting": True,
            "minorCompacting": False,
            "lastMajorCompactionTime": 0,
            "lastMinorCompactionTime": 0,
            "lastEntryLocationCompactionTime": 0,
            "majorCompactionCounter": 3,
            "minorCompactionCounter": 0,
            "entryLocationCompactionCounter": 0,
        }
    ],
    "/api/v1/bookie/gc/suspend_compaction": {"isMajorGcSuspended": "false", "isMinorGcSuspended": "false"},
}
"""The shapes that Apache's server sends (``tests/interop/http_routes/replies``)."""


def asked(path: str, seen: HealthSnapshot = SEEN, method: str = "GET") -> tuple[str, bytes]:
    codes: list[str] = []

    def start(status: str, headers: list[tuple[str, str]]) -> None:
        assert ("X-Content-Type-Options", "nosniff") in headers
        codes.append(status)

    def metrics(*_: object) -> Iterable[bytes]:
        return [b""]

    pages: dict[str, Callable[[], Any]] = {name: partial(route, seen) for name, route in ROUTES.items()}
    application = _Application(pages, metrics, "127.0.0.1")
    found = application({"REQUEST_METHOD": method, "PATH_INFO": path, "HTTP_HOST": "127.0.0.1:8000"}, start)
    return codes[0], b"".join(found)


@pytest.mark.parametrize("path", sorted(ROUTES))
def test_a_bookie_that_is_well_answers_as_apaches(path: str) -> None:
    for each in (path, f"{path}/"):
        code, body = asked(each)
        assert code == "200 OK"
        wanted = REPLIES[path]
        assert (body.decode() if isinstance(wanted, str) else json.loads(body)) == wanted


def test_readiness_is_of_this_bookie_alone_and_state_and_sanity_tell_what_is_wrong() -> None:
    away = SEEN._replace(condition=replace(WELL, registered=False, metadata="lost", without_metadata_s=60.0))
    assert asked("/api/v1/bookie/is_ready", away)[0] == "200 OK", "a probe must not end bookies when the store is away"
    assert json.loads(asked("/api/v1/bookie/sanity", away)[1]) == {"passed": False, "readOnly": False}
    stopping = SEEN._replace(condition=replace(WELL, running=False, read_only=True))
    assert asked("/api/v1/bookie/is_ready", stopping) == ("503 Service Unavailable", b"Bookie is not fully started yet")
    assert json.loads(asked("/api/v1/bookie/state", stopping)[1])["shuttingDown"] is True
    failed = SEEN._replace(condition=replace(WELL, failed=True))
    assert asked("/api/v1/bookie/is_ready", failed)[0] == "503 Service Unavailable"
    assert json.loads(asked("/api/v1/bookie/state", failed)[1])["availableForHighPriorityWrites"] is False


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_nothing_is_changed_over_these_pages(method: str) -> None:
    for path in ROUTES:
        assert asked(path, method=method)[0] == "405 Method Not Allowed"


@pytest.mark.parametrize(
    "path", ["/api/v1/bookie", "/api/v1/bookie/nothing", "/api/v1/ledger/list", "//heartbeat", "/"]
)
def test_what_is_no_route_is_not_found(path: str) -> None:
    assert asked(path)[0] == "404 Not Found"


def test_what_tells_of_a_bookie_alone_is_open_in_the_table_of_routes() -> None:
    told = {path for path, route in ALL_ROUTES.items() if "GET" in route.methods and route.methods["GET"].open}
    assert told == {*ROUTES, "/metrics"}
