"""What /healthz, /livez, /readyz and /metrics show: a WSGI application with prometheus-client's page in it.

Numbers are read while the loop changes them: each is one plain int or float, which is as exact as a scrape can be.
Nothing here changes anything, echoes input, or shows a secret (X47, X49, X50, X53).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import make_wsgi_app
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from bookkeeper.bookie.config import is_loopback
from bookkeeper.ids import Address
from bookkeeper.metrics import Counter, Gauge, Histogram, Metric, Metrics

Health = Callable[[], dict[str, Any]]
"""What a page about the bookie shows; its key ``status`` is "ok" or says why not (then the answer's code is 503)."""

_HEADERS = [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store")]


class MetricsCollector(Collector):
    """Our plain numbers in prometheus-client's terms."""

    def __init__(self, metrics: Metrics, refresh: Callable[[], None] = lambda: None) -> None:
        self._metrics = metrics
        self._refresh = refresh

    def collect(self) -> Iterable[Family]:
        self._refresh()
        families: dict[str, Any] = {}
        for name, text, labels, metric in list(self._metrics):
            family = families.get(name)
            if family is None:
                family = families[name] = _family(metric, name, text, list(labels))
            _add(family, list(labels.values()), metric)
        return families.values()


def _family(metric: Metric, name: str, text: str, labels: list[str]) -> Any:
    match metric:
        case Counter():
            return CounterMetricFamily(name, text, labels=labels)
        case Gauge():
            return GaugeMetricFamily(name, text, labels=labels)
        case Histogram():
            return HistogramMetricFamily(name, text, labels=labels)


def _add(family: Any, labels: list[str], metric: Metric) -> None:
    match metric:
        case Counter() | Gauge():
            family.add_metric(labels, metric.value)
        case Histogram():
            buckets = [("+Inf" if bound == float("inf") else str(bound), n) for bound, n in metric.cumulative()]
            family.add_metric(labels, buckets, sum_value=metric.total)


class _Handler(WSGIRequestHandler):
    """Quiet, and not for long."""

    timeout = 5

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's name
        """Scrapes are not worth a line."""


class HealthPages(WSGIServer):
    """Answers connections that somebody else has accepted at ``address``: :meth:`finish_request`, in any thread."""

    def __init__(
        self, address: Address, health: Mapping[str, Health], metrics: Metrics, refresh: Callable[[], None]
    ) -> None:
        super().__init__((address.host, address.port), _Handler, bind_and_activate=False)
        self.socket.close()  # it has none of its own
        self.server_name, self.server_port = address.host, address.port
        self.setup_environ()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(MetricsCollector(metrics, refresh))
        self.set_app(_Application(health, make_wsgi_app(registry), address.host))


class _Application:
    """The routes."""

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
        if path == "/metrics":
            return self._metrics(environ, start_response)
        if not isinstance(path, str) or path not in self._health:
            return _plain(start_response, "404 Not Found")
        state = self._health[path]()
        code = "200 OK" if state.get("status") == "ok" else "503 Service Unavailable"
        start_response(code, [("Content-Type", "application/json"), *_HEADERS])
        return [json.dumps(state).encode() + b"\n"]

    def _known_host(self, header: str) -> bool:
        """On loopback, only a name of loopback: a web page's name that resolves here is refused (X49)."""
        if not is_loopback(self._host):
            return True
        host = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() else header
        return is_loopback(host.removeprefix("[").removesuffix("]"))


def _plain(start_response: Callable[..., Any], status: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain"), *_HEADERS])
    return [status.encode() + b"\n"]
