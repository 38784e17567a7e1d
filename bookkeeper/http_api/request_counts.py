"""How many requests of each route there were, and how they were answered."""

from __future__ import annotations

from typing import Final

from bookkeeper.http_api.routes import METHODS, ROUTES
from bookkeeper.metrics import Metrics

OTHER: Final = "other"
"""What stands for every path that is no route, and for every method that no route has: clients choose those, and each
would be a number of its own."""


class RequestCounts:
    """The numbers of one process's API, added to ``metrics``; ``name`` is what they begin with."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics, self._name = metrics, f"{name}http_api_requests_total"

    def answered(self, method: str, path: str, status: int) -> None:
        """Count a request whose answer has begun."""
        route = ROUTES.get(path.removesuffix("/") if len(path) > 1 else path)
        self._metrics.counter(
            self._name,
            "Requests to the HTTP API that were answered, but for those that ask how this process is.",
            method=method if method in METHODS else OTHER,
            route=OTHER if route is None else route.path,
            status=str(status),
        ).add()
