"""Requests are counted by route, method and status, and no client makes the numbers many."""

from __future__ import annotations

from pathlib import Path

from bookkeeper.http_api.service import RequestCounts
from bookkeeper.metrics import Counter, Metrics
from tests.bookkeeper.http_api.served import Served, story

LIST = "/api/v1/ledger/list"


def counted(metrics: Metrics, name: str) -> dict[tuple[str, str, str], int]:
    return {
        (labels["method"], labels["route"], labels["status"]): metric.value
        for shown, _, labels, metric in metrics
        if shown == name and isinstance(metric, Counter)
    }


def test_a_path_that_is_no_route_and_a_method_that_none_has_are_one_number() -> None:
    metrics = Metrics("bookie_")
    counts = RequestCounts(metrics, "")
    for number in range(100):
        counts.answered("GET", f"/nothing/{number}", 404)
        counts.answered(f"M{number}", LIST, 405)
    counts.answered("GET", f"{LIST}/", 200)
    assert counted(metrics, "bookie_http_api_requests_total") == {
        ("GET", "other", "404"): 100,
        ("other", LIST, "405"): 100,
        ("GET", LIST, "200"): 1,
    }


def test_each_answer_is_counted_whoever_gave_it(tmp_path: Path) -> None:
    async def work(served: Served) -> None:
        assert (await served.ask("GET", LIST)).status == 200
        assert (await served.ask("GET", LIST, token=None)).status == 401
        assert (await served.ask("GET", "/nothing")).status == 404
        assert (await served.ask("GET", "/heartbeat", token=None)).status == 200
        assert counted(served.server.metrics, "bookie_http_api_requests_total") == {
            ("GET", LIST, "200"): 1,
            ("GET", LIST, "401"): 1,
            ("GET", "other", "404"): 1,
        }

    story(tmp_path, work, auditor=False)
