"""A process of autorecovery under the names of Apache's auditors and workers."""

from __future__ import annotations

import asyncio
from math import isnan

from prometheus_client.parser import text_string_to_metric_families

from bookkeeper.autorecovery.apache_names import NAMES, PERIOD_S, ReplicationNames
from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.autorecovery.service import AutorecoveryService
from bookkeeper.exposition import page
from bookkeeper.metrics import Metrics, Summary
from bookkeeper.testing.cluster import SimCluster

MARKED, READ = "auditor_NUM_UNDER_REPLICATED_LEDGERS", "replication_worker_NUM_BYTES_READ"


def samples(metrics: Metrics) -> dict[tuple[str, str], float]:
    """(name, quantile) -> value."""
    text = page(metrics, "")[0].decode()
    return {
        (sample.name, sample.labels.get("quantile", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_name_is_shown_and_quantiles_are_those_of_a_minute_that_is_over() -> None:
    marked = Summary()
    names = ReplicationNames(marked)
    report = AutorecoveryReport("healer", repaired=2, copied_entries=5, copied_bytes=700)
    names.show(report, 0.0)
    marked.observe(12)
    names.show(report, PERIOD_S - 1)
    before = samples(names.metrics)
    assert {name.removesuffix("_count").removesuffix("_sum") for name, _ in before} == set(NAMES)
    assert before[f"{MARKED}_count", ""] == 1 and before[f"{MARKED}_sum", ""] == 12
    assert isnan(before[MARKED, "0.5"])
    names.show(report, PERIOD_S)
    after = samples(names.metrics)
    assert 11.8 < after[MARKED, "0.5"] < 12.2
    assert after[f"{READ}_sum", ""] == 700 and after[f"{READ}_count", ""] == 5
    assert after["replication_worker_NUM_ENTRIES_WRITTEN", ""] == 5
    assert after["replication_worker_NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED", ""] == 2


def test_a_bookie_that_is_lost_is_counted_and_so_are_the_ledgers_that_are_marked_for_it() -> None:
    async def story(cluster: SimCluster) -> None:
        metrics = Metrics()
        async with cluster.connect() as bk:
            async with await bk.create_ledger(password=b"pw", ensemble=3, write_quorum=3, ack_quorum=2) as ledger:
                await ledger.append(b"one")
            service = AutorecoveryService(bk, "healer", AutorecoveryConfig(lost_bookie_delay_s=1), metrics)
            await service.start()
            await asyncio.sleep(10)
            assert samples(metrics)["autorecovery_lost_bookies", ""] == 0
            cluster.node("b1").crash()
            for _ in range(120):
                await asyncio.sleep(1)
                if samples(metrics)["autorecovery_ledgers_repaired_total", ""]:
                    break
            seen = samples(metrics)
            assert seen["autorecovery_lost_bookies", ""] == 1
            assert seen[f"{MARKED}_count", ""] == 1 == seen[f"{MARKED}_sum", ""]
            assert seen[f"{READ}_count", ""] == 1
            await service.stop()

    SimCluster(1, 4).run(story)
