"""The gauges of a bookie that are read when somebody asks for its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bookkeeper.bookie.connections.admission import Admission
from bookkeeper.bookie.health.health import BookieHealth
from bookkeeper.metrics import Metrics, Summary
from bookkeeper.volumes import Volumes
from bookkeeper.volumes.disks.volume_list import VolumeState

STORAGE_TEXTS: Final[Mapping[str, str]] = {
    "groups": "Groups that the journal has written, each with one sync.",
    "records": "Records in these groups: entries, fences, and what else must be durable.",
    "record_bytes": "Bytes of these records.",
    "journal_bytes": "Bytes of these groups in the journal's files, with headers and padding.",
    "sync_seconds": "Seconds that writing and syncing groups took.",
    "slowest_sync_seconds": "Seconds that the slowest group took.",
    "checkpoints": "Checkpoints that succeeded.",
    "reads_inline": "Reads that were answered from memory.",
    "reads_waited": "Reads that waited for the disk.",
    "corruptions": "Damaged records that readers have met.",
    "merges": "Merges of index segments.",
    "dropped_ledgers": "Deleted ledgers whose data were dropped.",
    "removed_logs": "Entry logs that were removed.",
    "removed_bytes": "Bytes of the removed entry logs that were dead as a whole.",
    "scrubbed_bytes": "Bytes that scrubs have read.",
    "scrub_passes": "Scrubs of every stored byte that came to their end.",
    "scrub_damages": "Damaged places that scrubs have found.",
    "compactions": "Compactions that came to their end.",
    "major_compactions": "Those of them that were major ones.",
    "compactions_failed": "Compactions that an error ended; they lose nothing.",
    "compacted_logs": "Entry logs that were removed after what lived in them was copied.",
    "compaction_copied_bytes": "Bytes that compactions have copied.",
    "compaction_reclaimed_bytes": "Bytes that compacted entry logs had taken, less what was copied.",
}
"""The counters of the storage engine since the bookie's start, and what they say."""


def refresh_metrics(
    metrics: Metrics,
    engine: Volumes,
    admission: Admission,
    condition: BookieHealth,
    *,
    insecure: bool,
    doubted: int,
) -> None:
    """Bring the gauges up to date. ``doubted``: how many ledgers are in doubt."""
    gauge = metrics.gauge
    stats = engine.stats
    for name in stats.__slots__ if hasattr(stats, "__slots__") else vars(stats):
        if isinstance(getattr(stats, name), Summary):
            continue
        gauge(f"storage_{name}", STORAGE_TEXTS[name]).value = getattr(stats, name)
    text = "Bytes of entries that are accepted and not yet durable."
    gauge("journal_bytes_in_flight", text).value = engine.journal_bytes_in_flight
    gauge("writable", "1 while the bookie takes new entries, else 0.").value = 0 if condition.read_only else 1
    text = "1 while the bookie is registered, so that clients find it, else 0."
    gauge("registered", text).value = 1 if condition.registered else 0
    text = "Bytes of requests that are accepted and not yet answered."
    gauge("in_progress_bytes", text).value = admission.in_progress
    text = "Times the bookie stopped reading from a connection because too much was in progress."
    gauge("paused_connections", text).value = admission.pauses
    gauge("refused_requests", "Requests refused because too much was in progress.").value = admission.refused
    text = "1 if the bookie serves a network without authentication, else 0."
    gauge("insecure", text).value = 1 if insecure else 0
    text = "Ledgers in doubt: older than the disk, and this bookie may have lost entries of them."
    gauge("doubted_ledgers", text).value = doubted
    if condition.garbage_age_s is not None:
        text = "Seconds since the last garbage pass that succeeded."
        gauge("garbage_pass_age_seconds", text).value = condition.garbage_age_s
    text = "Suspect ledgers: damage on the disk may have taken entries of them; until the copies are whole again."
    gauge("damaged_ledgers", text).value = len(engine.suspects)
    _refresh_directories(metrics, engine)
    compactor = engine.compactor
    text = "1 while entry logs are being compacted, else 0."
    gauge("compacting", text).value = 1 if compactor.is_running else 0
    text = "Entry logs that are not compacted, because something is wrong with them."
    gauge("logs_not_compacted", text).value = compactor.logs_left
    if (age := compactor.age_s) is not None:
        gauge("compaction_age_seconds", "Seconds since a compaction of entry logs last ended well.").value = age


def _refresh_directories(metrics: Metrics, engine: Volumes) -> None:
    gauge = metrics.gauge
    serving = list(engine.serving)
    for each in serving:
        space, place = each.engine.space(), each.config.ledger_dir
        text = "Bytes of the file system of a ledger directory."
        gauge("directory_total_bytes", text, directory=place).value = space.total
        text = "Bytes of it that are free; the bookie keeps a reserve of them."
        gauge("directory_free_bytes", text, directory=place).value = space.free
    lost = [each for each in engine.volume_list if each.state is VolumeState.LOST]
    gauge("lost_directories", "Ledger directories that have failed, or were given up.").value = len(lost)
    failing = [each for each in serving if each.engine.sentences()]
    text = "Ledger directories whose last checkpoint failed, so that their journal grows."
    gauge("failing_checkpoints", text).value = len(failing)
