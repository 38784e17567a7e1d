"""A bookie under the names of Apache's: boards and alarms for Apache BookKeeper find what they ask for."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bookkeeper.autorecovery.apache_names import NAMES as REPLICATION
from bookkeeper.bookie.health.apache_names import ABSENT, NAMES
from bookkeeper.exposition import page
from bookkeeper.testing.cluster import SimCluster

ROOT = Path(__file__).parents[4]

ON_BOARDS = [
    "bookie_COMPACT_RUNTIME_count",
    "bookie_DELETED_LEDGER_COUNT",
    "bookie_MAJOR_COMPACTION_COUNT",
    "bookie_MINOR_COMPACTION_COUNT",
    "bookie_READ_BYTES",
    "bookie_RECLAIMED_COMPACTION_SPACE_BYTES",
    "bookie_RECLAIMED_DELETION_SPACE_BYTES",
    "bookie_SERVER_STATUS",
    "bookie_WRITE_BYTES",
    "bookie_entries_count",
    "bookie_journal_JOURNAL_ADD_ENTRY",
    "bookie_journal_JOURNAL_CB_QUEUE_SIZE",
    "bookie_journal_JOURNAL_FORCE_WRITE_QUEUE_SIZE",
    "bookie_journal_JOURNAL_QUEUE_SIZE",
    "bookie_journal_JOURNAL_SYNC",
    "bookie_ledger_writable_dirs",
    "bookie_ledgers_count",
    "bookie_read_cache_hits_count",
    "bookie_read_cache_misses_count",
    "bookie_read_cache_size",
    "bookie_write_cache_size",
    "bookkeeper_server_ADD_ENTRY",
    "bookkeeper_server_ADD_ENTRY_BLOCKED",
    "bookkeeper_server_ADD_ENTRY_IN_PROGRESS",
    "bookkeeper_server_ADD_ENTRY_REQUEST",
    "bookkeeper_server_READ_ENTRY",
    "bookkeeper_server_READ_ENTRY_BLOCKED",
    "bookkeeper_server_READ_ENTRY_IN_PROGRESS",
    "bookkeeper_server_READ_ENTRY_REQUEST",
]
"""What the boards of streamnative/apache-pulsar-grafana-dashboard ask of a bookie, without ``_count`` of summaries."""


def test_every_name_of_the_published_boards_is_there_or_has_a_reason() -> None:
    assert set(ON_BOARDS) - NAMES.keys() - ABSENT.keys() == set()
    assert not NAMES.keys() & ABSENT.keys()


def test_the_page_has_the_tables() -> None:
    text = (ROOT / "docs/compatibility.md").read_text()
    rows = dict(re.findall(r"^\| `(book\w+)` \| (.*) \|$", text, flags=re.MULTILINE))
    assert rows == {**NAMES, **ABSENT}
    rows = dict(re.findall(r"^\| `((?:auditor|replication)\w+)` \| (.*) \|$", text, flags=re.MULTILINE))
    assert rows == REPLICATION


def test_a_bookie_under_load_shows_them_in_milliseconds_and_counts_never_fall() -> None:
    async def story(cluster: SimCluster) -> None:
        server = cluster.servers["b1"]

        def seen() -> dict[tuple[str, str, str], float]:
            server.refresh_metrics()
            text = page(server.metrics, "")[0].decode()
            names: dict[str, str] = {}
            found: dict[tuple[str, str, str], float] = {}
            for family in text_string_to_metric_families(text):
                assert family.name not in names, "one TYPE for each name"
                names[family.name] = family.type
                for sample in family.samples:
                    key = sample.name, sample.labels.get("success", ""), sample.labels.get("quantile", "")
                    found[key] = sample.value
            return found

        before = seen()
        async with cluster.connect() as bk:
            async with await bk.create_ledger(password=b"pw") as ledger:
                for _ in range(20):
                    await ledger.append(b"x" * 1000)
                    await asyncio.sleep(0.01)
            reader = await bk.open_ledger(ledger.id, password=b"pw")
            for entry in range(20):
                await reader.read_entry(entry)
            server.refresh_metrics()
            await asyncio.sleep(61)
            after = seen()
        shown = {name for name, _, _ in after}
        directory = {name for name in shown if re.fullmatch("bookie_ledger_dir_.*_usage", name)}
        assert len(directory) == 1
        assert 0 <= after[directory.pop(), "", ""] <= 100, "per cent"
        assert NAMES.keys() - shown == {"bookie_ledger_dir_PATH_usage"}
        assert after["bookkeeper_server_ADD_ENTRY_REQUEST_count", "true", ""] == 20
        assert after["bookie_WRITE_BYTES", "", ""] >= 20_000
        median = after["bookkeeper_server_ADD_ENTRY_REQUEST", "true", "0.5"]
        assert 0.001 < median < 1000, "milliseconds of a simulated disk"
        assert after["bookie_SERVER_STATUS", "", ""] == after["bookie_ledgers_count", "", ""] == 1
        assert after["bookie_journal_JOURNAL_SYNC_count", "true", ""] >= 20
        assert after["bookkeeper_server_READ_ENTRY_REQUEST_count", "true", ""] >= 6, "its share of the reads"
        fallen = [key for key, value in before.items() if key[0].endswith("_count") and after[key] < value]
        assert fallen == []

    SimCluster(1, 3).run(story)


@pytest.mark.parametrize("count", [0, 3])
def test_a_page_without_a_sample_parses_and_its_quantiles_are_none(count: int) -> None:
    async def story(cluster: SimCluster) -> None:
        server = cluster.servers["b1"]
        for _ in range(count + 1):
            server.refresh_metrics()
            await asyncio.sleep(61)
        families = {each.name: each for each in text_string_to_metric_families(page(server.metrics, "")[0].decode())}
        values = [
            each.value
            for each in families["bookkeeper_server_ADD_ENTRY_REQUEST"].samples
            if each.labels.get("quantile")
        ]
        assert len(values) == 14 and all(value != value for value in values)

    SimCluster(1, 1).run(story)
