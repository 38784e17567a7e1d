"""What a start has found in its directories: the ledgers and logs that it goes on with. Data."""

from __future__ import annotations

from dataclasses import dataclass, field

from bookkeeper.storage.base.manifest import Manifest
from bookkeeper.storage.base.results import OpenReport
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from bookkeeper.storage.start.losses import StartLosses
from bookkeeper.storage.start.replayed_ledgers import ReplayedLedgers


@dataclass(slots=True)
class Inventory:
    """Made by the scan; the replay adds to it; the checkpoint covers it."""

    manifest: Manifest
    """The mark: what is on disk, or what stands for it where none is."""
    entry_logs: EntryLogs
    ledgers: ReplayedLedgers = field(default_factory=ReplayedLedgers)
    losses: StartLosses = field(default_factory=StartLosses)
    report: OpenReport = field(default_factory=OpenReport)
    no_manifest: str | None = None
    """Why there is no manifest; None: there is one."""
    keep: set[int] = field(default_factory=set)
    """Logs that are not finished (cut): they may hold more than is known."""
