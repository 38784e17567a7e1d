"""The names of all metrics that servers of ours show, from the servers themselves where one can be simulated."""

from __future__ import annotations

import ast
import asyncio
from functools import cache
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.service import AutorecoveryService
from bookkeeper.exposition import page, server_page
from bookkeeper.metrics import Metrics
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


@cache
def shown() -> frozenset[str]:
    """The names of all samples."""
    return frozenset(
        {
            *_of_a_cluster(),
            *_on(_stream_gateway()),
            *_on(_spark_gateway()),
            *_in_sources("bookie_", (*_AT_BOOKIES, *_AT_BOTH)),
            *_in_sources("gateway_", (*_AT_GATEWAYS, *_AT_BOTH, *_AT_SPARK)),
            *_in_sources("bookkeeper_streams_gateway_", (*_AT_GATEWAYS, *_AT_BOTH)),
        }
    )


def _on(metrics: Metrics) -> set[str]:
    return _samples(server_page(metrics, "")[0].decode())


def _samples(text: str) -> set[str]:
    return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}


def _of_a_cluster() -> set[str]:
    """A bookie with load behind it, and autorecovery as a process and inside a bookie."""

    async def story(cluster: SimCluster) -> set[str]:
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
            compacted = asyncio.Event()
            server.engine.compact(lambda error: compacted.set())
            await compacted.wait()
            await asyncio.sleep(2 * server.config.garbage_interval_s)
            server.refresh_metrics()
            names = _samples(page(server.metrics, "")[0].decode()) | _on(alone)
            for service in services:
                await service.stop()
            return names

    return SimCluster(1, 1, garbage_interval_s=5.0).run(story)


def _stream_gateway() -> Metrics:
    counts = GatewayMetrics()
    counts.answered("Append", 0.1, "NOT_FOUND")
    return counts.metrics


def _spark_gateway() -> Metrics:
    metrics = Metrics("gateway_")
    RequestMetrics(metrics).count("OPEN", 0.1, ok=False)
    return metrics


def _in_sources(prefix: str, modules: tuple[str, ...]) -> set[str]:
    """The literal names that modules give their metrics: those of parts that need certificates, files or a network."""
    found: set[str] = set()
    for module in modules:
        for node in ast.walk(ast.parse(Path(ROOT / module).read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("gauge", "counter")
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                found.add(prefix + str(node.args[0].value))
    return found
