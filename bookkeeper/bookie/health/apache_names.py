"""A bookie's numbers under the names that Apache's bookies give them, where they mean the same.

Whoever has boards and alarms for Apache BookKeeper keeps them. Times are in milliseconds there, and in seconds here.
:data:`NAMES` says what each name is here, and :data:`ABSENT` which names of the published boards have no counterpart,
and why; docs/compatibility.md shows both, and a test holds it against them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bookkeeper.bookie.connections.server_metrics import ServerMetrics
from bookkeeper.bookie.health.health import BookieHealth
from bookkeeper.metrics import Metrics, Summary
from bookkeeper.storage.base.results import EngineState
from bookkeeper.volumes import Volumes
from bookkeeper.volumes.disks.serving import Volume
from bookkeeper.volumes.disks.volume_list import VolumeState

PERIOD_S: Final = 60.0
"""Quantiles are those of the last minute that is over, as Apache's (``prometheusStatsLatencyRolloverSeconds``)."""

MS: Final = 1000.0

NAMES: Final[Mapping[str, str]] = {
    "bookkeeper_server_ADD_ENTRY_REQUEST": "adds, from their arrival to their replies (milliseconds)",
    "bookkeeper_server_ADD_ENTRY": "the same: there is no queue between a request and its work",
    "bookkeeper_server_READ_ENTRY_REQUEST": "reads, single and in batches, from their arrival to their replies",
    "bookkeeper_server_READ_ENTRY": "the same",
    "bookie_journal_JOURNAL_SYNC": "writing and syncing a group of the journal",
    "bookie_journal_JOURNAL_ADD_ENTRY": "adds, until they are durable in the journal",
    "bookie_SERVER_STATUS": "1 writable, 0 read-only, -1 not registered",
    "bookie_WRITE_BYTES": "bytes of entries accepted",
    "bookie_READ_BYTES": "bytes of replies to reads",
    "bookie_ledgers_count": "ledgers that this bookie has",
    "bookie_ledger_writable_dirs": "ledger directories that serve and take new ledgers",
    "bookie_ledger_num_dirs": "ledger directories that serve, and those that were lost",
    "bookie_ledger_dir_PATH_usage": "per cent of a ledger directory's file system that is used",
    "bookie_read_cache_hits": "reads that were answered from memory",
    "bookie_read_cache_hits_count": "the same, as older boards name it",
    "bookie_read_cache_misses": "reads that waited for the disk",
    "bookie_read_cache_misses_count": "the same, as older boards name it",
    "bookie_DELETED_LEDGER_TOTAL": "deleted ledgers whose data were dropped",
    "bookie_DELETED_LEDGER_COUNT": "the same, as older boards name it",
    "bookie_RECLAIMED_DELETION_SPACE_BYTES": "bytes of entry logs that were dead as a whole, and removed",
    "bookie_RECLAIMED_COMPACTION_SPACE_BYTES": "bytes that compaction has given back",
    "bookie_COMPACT_RUNTIME_count": "compactions that came to their end",
    "bookie_MAJOR_COMPACTION_TOTAL": "major ones of them",
    "bookie_MAJOR_COMPACTION_COUNT": "the same, as older boards name it",
    "bookie_MINOR_COMPACTION_TOTAL": "minor ones of them",
    "bookie_MINOR_COMPACTION_COUNT": "the same, as older boards name it",
}

ABSENT: Final[Mapping[str, str]] = {
    "bookie_journal_JOURNAL_QUEUE_SIZE": "adds wait in no queue: the next group takes all that have come",
    "bookie_journal_JOURNAL_FORCE_WRITE_QUEUE_SIZE": "one group is written at a time",
    "bookie_journal_JOURNAL_CB_QUEUE_SIZE": "replies leave with the group's sync",
    "bookie_write_cache_size": "entries are in their logs when they are acknowledged; there is no write cache",
    "bookie_read_cache_size": "the cache is the operating system's, and the last groups",
    "bookie_entries_count": "nobody counts entries: it would cost more than it tells",
    "bookkeeper_server_ADD_ENTRY_IN_PROGRESS": "what is in progress is bounded and shown in bytes",
    "bookkeeper_server_READ_ENTRY_IN_PROGRESS": "the same",
    "bookkeeper_server_ADD_ENTRY_BLOCKED": "connections that have to wait are not read: bookie_paused_connections",
    "bookkeeper_server_READ_ENTRY_BLOCKED": "the same",
}


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the numbers come from."""

    counts: ServerMetrics
    engine: Volumes
    condition: BookieHealth


class ApacheNames:
    """The numbers of one bookie's page under Apache's names."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self._turned: float | None = None

    def refresh(self, sources: Sources, now: float) -> None:
        """Bring the numbers up to date. ``now`` in seconds, of a clock that never goes back."""
        counts, stats = sources.counts, sources.engine.stats
        adds, failed_adds = counts.add_summary, counts.add_failures
        reads, failed_reads = counts.read_summary, counts.read_failures
        if self._turned is None or now - self._turned >= PERIOD_S:
            self._turned = now
            for each in (adds, failed_adds, reads, failed_reads):
                each.turn()
            for volume in sources.engine.serving:
                volume.engine.stats.sync_summary.turn()
            stats = sources.engine.stats
        for name in ("bookkeeper_server_ADD_ENTRY_REQUEST", "bookkeeper_server_ADD_ENTRY"):
            self._times(name, adds, failed_adds)
        for name in ("bookkeeper_server_READ_ENTRY_REQUEST", "bookkeeper_server_READ_ENTRY"):
            self._times(name, reads, failed_reads)
        self._times("bookie_journal_JOURNAL_SYNC", stats.sync_summary, None)
        self._times("bookie_journal_JOURNAL_ADD_ENTRY", adds, failed_adds)
        condition = sources.condition
        status = -1 if not condition.registered else 0 if condition.read_only else 1
        self._number("bookie_SERVER_STATUS", status)
        self._number("bookie_WRITE_BYTES", counts.add_bytes.value)
        self._number("bookie_READ_BYTES", counts.read_bytes.value)
        for ending in ("", "_count"):
            self._number(f"bookie_read_cache_hits{ending}", stats.reads_inline)
            self._number(f"bookie_read_cache_misses{ending}", stats.reads_waited)
        for ending in ("TOTAL", "COUNT"):
            self._number(f"bookie_DELETED_LEDGER_{ending}", stats.dropped_ledgers)
            self._number(f"bookie_MAJOR_COMPACTION_{ending}", stats.major_compactions)
            self._number(f"bookie_MINOR_COMPACTION_{ending}", stats.compactions - stats.major_compactions)
        self._number("bookie_RECLAIMED_DELETION_SPACE_BYTES", stats.removed_bytes)
        self._number("bookie_RECLAIMED_COMPACTION_SPACE_BYTES", stats.compaction_reclaimed_bytes)
        self._number("bookie_COMPACT_RUNTIME_count", stats.compactions)
        self._directories(sources.engine)

    def _directories(self, engine: Volumes) -> None:
        serving = list(engine.serving)
        self._number("bookie_ledgers_count", sum(engine.ledger_count(each.number) for each in serving))
        self._number("bookie_ledger_writable_dirs", sum(map(_is_writable, serving)))
        lost = [each for each in engine.volume_list if each.state is VolumeState.LOST]
        self._number("bookie_ledger_num_dirs", len(serving) + len(lost))
        for each in serving:
            space = each.engine.space()
            name = re.sub(r"[^A-Za-z0-9_]", "_", each.config.ledger_dir)
            text = NAMES["bookie_ledger_dir_PATH_usage"]
            used = 100.0 * (space.total - space.free) / space.total if space.total else 0.0
            self.metrics.gauge(f"bookie_ledger_dir_{name}_usage", text).value = used

    def _number(self, name: str, value: float) -> None:
        self.metrics.gauge(name, NAMES[name]).value = value

    def _times(self, name: str, good: Summary, bad: Summary | None) -> None:
        """Show times in milliseconds, the good and the failed ones apart."""
        for success, seconds in (("true", good), ("false", bad or Summary())):
            self.metrics.summary(name, NAMES[name], success=success).show(seconds, MS)


def _is_writable(volume: Volume) -> bool:
    return volume.engine.state is EngineState.WRITABLE and volume.engine.takes_new_ledgers
