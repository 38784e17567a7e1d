"""Our plain numbers as the page that Prometheus reads, by the library ``prometheus-client``.

The only module that knows the library. It takes a good part of a second to load, so servers import this module when
somebody asks for their metrics, and never on a loop that others wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder, make_wsgi_app
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from bookkeeper.metrics import Counter, Gauge, Histogram, Metric, Metrics, Summary

QUANTILES = (0.5, 0.75, 0.95, 0.99, 0.999, 0.9999, 1.0)
"""Those that Apache's servers show."""

WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class MetricsCollector(Collector):
    """Our plain numbers in prometheus-client's terms."""

    def __init__(self, metrics: Metrics, refresh: Callable[[], None] = lambda: None) -> None:
        """``refresh`` brings ``metrics`` up to date before they are read."""
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


class SummaryFamily(Family):
    """A summary with its quantiles, which the library's own leaves out."""

    def __init__(self, name: str, text: str, labels: list[str]) -> None:
        super().__init__(name, text, "summary")
        self._labels = labels

    def add(self, values: list[str], summary: Summary) -> None:
        labels = dict(zip(self._labels, values, strict=True))
        for share, value in zip(QUANTILES, summary.quantiles(QUANTILES), strict=True):
            self.add_sample(self.name, {**labels, "quantile": str(share)}, value)
        self.add_sample(f"{self.name}_count", labels, summary.count)
        self.add_sample(f"{self.name}_sum", labels, summary.total)


def page(metrics: Metrics, accept: str) -> tuple[bytes, str]:
    """The numbers as text, and its content type: the format that ``accept``, the request's header, prefers."""
    encode, content_type = choose_encoder(accept)
    return encode(_registry(MetricsCollector(metrics))), content_type


def server_page(metrics: Metrics, accept: str) -> tuple[bytes, str]:
    """The same with the numbers of this process: processor time, memory, descriptors."""
    encode, content_type = choose_encoder(accept)
    return encode(_with_process(_registry(MetricsCollector(metrics)))), content_type


def wsgi_page(metrics: Metrics, refresh: Callable[[], None]) -> WsgiApplication:
    """The page of :func:`server_page` as a WSGI application."""
    return make_wsgi_app(_with_process(_registry(MetricsCollector(metrics, refresh))))


def _registry(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return registry


def _with_process(registry: CollectorRegistry) -> CollectorRegistry:
    """The same, with process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds and others."""
    ProcessCollector(registry=registry)
    return registry


def _family(metric: Metric, name: str, text: str, labels: list[str]) -> Any:
    match metric:
        case Counter():
            return CounterMetricFamily(name, text, labels=labels)
        case Gauge():
            return GaugeMetricFamily(name, text, labels=labels)
        case Histogram():
            return HistogramMetricFamily(name, text, labels=labels)
        case Summary():
            return SummaryFamily(name, text, labels)


def _add(family: Any, labels: list[str], metric: Metric) -> None:
    match metric:
        case Counter() | Gauge():
            family.add_metric(labels, metric.value)
        case Histogram():
            buckets = [("+Inf" if bound == float("inf") else str(bound), n) for bound, n in metric.cumulative()]
            family.add_metric(labels, buckets, sum_value=metric.total)
        case Summary():
            family.add(labels, metric)
