"""All metrics that servers of ours show, from the servers themselves where one can be simulated."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.service import AutorecoveryService
from bookkeeper.exposition import server_page
from bookkeeper.http_api.service import RequestCounts
from bookkeeper.metrics import Counter, Gauge, Histogram, Metrics, Summary
from bookkeeper.testing.cluster import SimCluster
from segments.gateway.gateway_metrics import GatewayMetrics
from spark_wal.webhdfs.http.request_metrics import RequestMetrics
from tests.boards.deployed import ROOT

FROM_PROMETHEUS: Final = frozenset({"up", "ALERTS"})
"""What Prometheus itself keeps."""

_AT_BOOKIES: Final = ("bookkeeper/bookie/connections/connection_security.py",)
_AT_GATEWAYS: Final = ("bookkeeper/gateways/access_control.py",)
_AT_BOTH: Final = ("bookkeeper/audit/audit_log.py", "bookkeeper/meta/policy_follower.py")
_AT_SPARK: Final = ("spark_wal/webhdfs/http/http_server.py",)
_KINDS: Final = {Counter: "counter", Gauge: "gauge", Histogram: "histogram", Summary: "summary"}
_OF_A_PATH: Final = re.compile(r"(?<=bookie_ledger_dir_)\w+(?=_usage)")
_SAMPLES: Final = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}


@dataclass(frozen=True, slots=True)
class ShownMetric:
    """One metric of a page."""

    name: str
    kind: str
    text: str
    """Its help."""
    labels: tuple[str, ...] = ()


@cache
def metrics() -> dict[str, ShownMetric]:
    """All of them, by name."""
    found = [
        *_of_a_cluster(),
        *_of(_stream_gateway()),
        *_of(_spark_gateway()),
        *_of(_http_api("bookie_", "")),
        *_of(_http_api("", "autorecovery_")),
        *_of_the_process(),
        *_in_sources("bookie_", (*_AT_BOOKIES, *_AT_BOTH)),
        *_in_sources("gateway_", (*_AT_GATEWAYS, *_AT_BOTH, *_AT_SPARK)),
        *_in_sources("bookkeeper_streams_gateway_", (*_AT_GATEWAYS, *_AT_BOTH)),
    ]
    return {each.name: each for each in sorted(found, key=lambda each: (each.name, each.text))}


@cache
def shown() -> frozenset[str]:
    """The names of all samples."""
    return frozenset(each.name + ending for each in metrics().values() for ending in _SAMPLES.get(each.kind, ("",)))


def _of(shown_by: Metrics) -> Iterator[ShownMetric]:
    for name, text, labels, metric in shown_by:
        yield ShownMetric(_OF_A_PATH.sub("PATH", name), _KINDS[type(metric)], text, tuple(labels))


def _of_the_process() -> Iterator[ShownMetric]:
    """What the library for Prometheus adds."""
    for family in text_string_to_metric_families(server_page(Metrics(), "")[0].decode()):
        ending = "_total" if family.type == "counter" else ""
        yield ShownMetric(family.name + ending, family.type, family.documentation)


def _of_a_cluster() -> list[ShownMetric]:
    """A bookie with load behind it, and autorecovery as a process and inside a bookie."""

    async def story(cluster: SimCluster) -> list[ShownMetric]:
        server, alone = cluster.servers["b1"], Metrics()
        async with cluster.connect() as bk:
            services = [
                AutorecoveryService(bk, name, AutorecoveryConfig(), metrics)
                for name, metrics in (("alone", alone), ("inside", server.metrics))
            ]
            for service in services:
                await service.start()
            async with await bk.create_ledger(password=b"pw", ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
                await ledger.append(b"x")
            reader = await bk.open_ledger(ledger.id, password=b"pw")
            await reader.read_entry(0)
            compacted = asyncio.Event()
            server.engine.compact(lambda error: compacted.set())
            await compacted.wait()
            await asyncio.sleep(2 * server.config.garbage_interval_s)
            server.refresh_metrics()
            found = [*_of(server.metrics), *_of(alone)]
            for service in services:
                await service.stop()
            return found

    return SimCluster(1, 1, garbage_interval_s=5.0).run(story)


def _stream_gateway() -> Metrics:
    counts = GatewayMetrics()
    counts.answered("Append", 0.1, "NOT_FOUND")
    return counts.metrics


def _spark_gateway() -> Metrics:
    counted = Metrics("gateway_")
    RequestMetrics(counted).count("OPEN", 0.1, ok=False)
    return counted


def _http_api(prefix: str, name: str) -> Metrics:
    counted = Metrics(prefix)
    RequestCounts(counted, name).answered("GET", "/api/v1/ledger/list", 200)
    return counted


def _in_sources(prefix: str, modules: tuple[str, ...]) -> Iterator[ShownMetric]:
    """Metrics with literal names: those of parts that need certificates, files or a network."""
    for module in modules:
        for function in ast.walk(ast.parse(Path(ROOT / module).read_text())):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            texts: dict[str, str] = {}
            for node in sorted(ast.walk(function), key=lambda node: getattr(node, "lineno", 0)):
                match node:
                    case ast.Assign([ast.Name(name)], ast.Constant(str(text))):
                        texts[name] = text
                    case ast.Call(ast.Attribute(attr=("gauge" | "counter") as kind), [ast.Constant(str(name)), *rest]):
                        yield ShownMetric(prefix + name, kind, _literal(rest, texts))


def _literal(words: list[ast.expr], texts: dict[str, str]) -> str:
    match words:
        case [ast.Constant(str(text)), *_]:
            return text
        case [ast.Name(name), *_]:
            return texts.get(name, "")
    return ""
