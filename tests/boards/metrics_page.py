"""docs/metrics.md: every metric, made from what servers show.

python -m tests.boards.metrics_page     writes the page anew
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from bookkeeper.autorecovery.apache_names import NAMES as REPLICATION
from bookkeeper.bookie.health.apache_names import NAMES
from tests.boards.deployed import ROOT, alarms
from tests.boards.promql import named
from tests.boards.shown_metrics import ShownMetric, metrics

PAGE: Final = ROOT / "docs/metrics.md"
_APACHE: Final = frozenset({*NAMES, *REPLICATION})
COUNTERPARTS: Final[Mapping[str, str]] = {
    "bookie_add_bytes_total": "bookie_WRITE_BYTES",
    "bookie_add_seconds": "bookkeeper_server_ADD_ENTRY_REQUEST",
    "bookie_read_bytes_total": "bookie_READ_BYTES",
    "bookie_storage_compaction_reclaimed_bytes": "bookie_RECLAIMED_COMPACTION_SPACE_BYTES",
    "bookie_storage_compactions": "bookie_COMPACT_RUNTIME_count",
    "bookie_storage_dropped_ledgers": "bookie_DELETED_LEDGER_TOTAL",
    "bookie_storage_groups": "bookie_journal_JOURNAL_SYNC_count",
    "bookie_storage_major_compactions": "bookie_MAJOR_COMPACTION_TOTAL",
    "bookie_storage_reads_inline": "bookie_read_cache_hits",
    "bookie_storage_reads_waited": "bookie_read_cache_misses",
    "bookie_storage_removed_bytes": "bookie_RECLAIMED_DELETION_SPACE_BYTES",
    "autorecovery_copied_bytes_total": "replication_worker_NUM_BYTES_WRITTEN_sum",
    "autorecovery_copied_entries_total": "replication_worker_NUM_ENTRIES_WRITTEN",
    "autorecovery_ledgers_repaired_total": "replication_worker_NUM_FULL_OR_PARTIAL_LEDGERS_REPLICATED",
}
"""Ours -> Apache's name of the same number."""
_PARTS: Final = (
    ("Bookies", re.compile(r"bookie_(?!autorecovery_)(?!client_)")),
    ("Autorecovery", re.compile(r"autorecovery_")),
    ("Gateways for Spark", re.compile(r"gateway_")),
    ("Gateways of streams", re.compile(r"bookkeeper_streams_gateway_")),
    ("Every process", re.compile(r"process_")),
)
HEAD: Final = """\
# Metrics

<!-- Written by: python -m tests.boards.metrics_page -->

Every number that servers show at `/metrics`, under our names, with the alarms that ask for it.
What an alarm means says the [runbook](runbook.md#alarms).
The page is made from what servers show, and a test compares it.
A counter only grows, and begins at 0 with the process.
Those of `bookie_storage_` do, too, except the slowest sync, though Prometheus is told that they are gauges.
A histogram has `_bucket`, `_sum` and `_count`, in seconds.
Inside a bookie the numbers of autorecovery begin with `bookie_`.
The numbers under the names of Apache's servers are on [another page](compatibility.md#names-of-metrics).
The column *Apache's* says which of them is the same.
A gateway of streams shows the numbers of its client, too (`bookkeeper_client_…`).
"""


def page() -> str:
    """The whole page."""
    asked: dict[str, list[str]] = {}
    known = metrics()
    for alarm in alarms():
        found = named(alarm.query)
        for name in known:
            if _is_named(name, known[name], found.names, found.patterns):
                asked.setdefault(name, []).append(f"`{alarm.name}`")
    parts = [HEAD]
    for title, pattern in _PARTS:
        rows = [each for name, each in known.items() if pattern.match(name) and name not in _APACHE]
        parts.append(f"\n## {title}\n\n| metric | kind | what it is | Apache's | alarms |\n|---|---|---|---|---|\n")
        parts += [_row(each, asked.get(each.name, [])) for each in rows]
    return "".join(parts)


def _is_named(name: str, metric: ShownMetric, names: frozenset[str], patterns: frozenset[str]) -> bool:
    endings = ("", "_bucket", "_sum", "_count") if metric.kind in ("histogram", "summary") else ("",)
    return any(name + ending in names for ending in endings) or any(re.fullmatch(each, name) for each in patterns)


def _row(metric: ShownMetric, alarmed: list[str]) -> str:
    labels = f" ({', '.join(f'`{label}`' for label in metric.labels)})" if metric.labels else ""
    text = metric.text.rstrip(".").replace("|", "\\|")
    apache = COUNTERPARTS.get(metric.name, "")
    same = f"`{apache}`" if apache else ""
    return f"| `{metric.name}`{labels} | {metric.kind} | {text} | {same} | {', '.join(alarmed)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
