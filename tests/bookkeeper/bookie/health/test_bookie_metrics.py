"""The gauges of a running bookie."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.bookie.health.bookie_metrics import refresh_metrics
from tests.bookkeeper.bookie.cluster import Cluster, run


def test_the_gauges_say_what_the_bookie_is() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        server = cluster.server
        assert server is not None
        condition = server.condition()
        refresh_metrics(server.metrics, server.engine, server.port.admission, condition, insecure=False, doubted=0)
        value = {name: server.metrics.gauge(name).value for name in ("writable", "registered", "insecure")}
        assert value == {"writable": 1, "registered": 1, "insecure": 0}
        refresh_metrics(server.metrics, server.engine, server.port.admission, condition, insecure=True, doubted=3)
        assert server.metrics.gauge("doubted_ledgers").value == 3
        assert server.metrics.gauge("insecure").value == 1
        assert server.metrics.gauge("compacting").value == server.metrics.gauge("logs_not_compacted").value == 0
        space = server.engine.serving[0].engine.space()
        place = server.engine.serving[0].config.ledger_dir
        assert server.metrics.gauge("directory_free_bytes", directory=place).value == space.free > 0
        assert server.metrics.gauge("directory_total_bytes", directory=place).value == space.total > space.free
        assert server.metrics.gauge("lost_directories").value == server.metrics.gauge("failing_checkpoints").value == 0
        done = asyncio.Event()
        server.engine.compact(lambda error: done.set())
        await done.wait()
        await asyncio.sleep(5)
        refresh_metrics(server.metrics, server.engine, server.port.admission, condition, insecure=True, doubted=3)
        assert server.metrics.gauge("compaction_age_seconds").value == pytest.approx(5, abs=0.1)
        assert server.metrics.gauge("storage_compactions").value == 1

    run(main)
