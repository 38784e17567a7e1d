"""Makes the parts of a bookie whose disk is open: who knows whom. Nothing is decided here, and nothing begins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from bookkeeper.audit import NO_AUDIT, AuditLog
from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.control.ledger_directories import LedgerDirectories
from bookkeeper.bookie.control.read_only_order import ReadOnlyOrder
from bookkeeper.bookie.garbage.garbage_collector import GarbageCollector
from bookkeeper.bookie.identity.completion import Completion
from bookkeeper.bookie.identity.ledger_keys import LedgerKeys
from bookkeeper.bookie.identity.limbo_ledgers import LimboLedgers
from bookkeeper.bookie.identity.progress_publisher import ProgressPublisher
from bookkeeper.bookie.identity.seen_metadata import SeenMetadata
from bookkeeper.bookie.identity.stale_adds import StaleAdds
from bookkeeper.bookie.identity.state_files import check_state_files
from bookkeeper.bookie.identity.suspect_repairs import SuspectRepairs
from bookkeeper.bookie.ownership.ledger_permissions import LedgerPermissions
from bookkeeper.bookie.ownership.owner_log import OwnerLog
from bookkeeper.bookie.start.bookie_start import BookieStart
from bookkeeper.errors import MetadataError
from bookkeeper.meta.policy_follower import AccessReporter, PolicyFollower
from bookkeeper.meta.records.access_servers import BOOKIE
from bookkeeper.meta.records.read_only import ReadOnlyOrders
from bookkeeper.meta.records.rollback import RollbackWatch
from bookkeeper.metrics import Metrics
from bookkeeper.storage.engine import EngineState
from bookkeeper.volumes import Volumes

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieReports:
    """Who is told what the parts find."""

    on_state: Callable[[EngineState, str], None]
    """The disk is in another state, and why."""
    on_pressure: Callable[[], None]
    """Too many adds wait for the journal."""
    on_relief: Callable[[], None]
    """The journal has caught up."""
    on_mode: Callable[[], None]
    """The bookie may have to register as read-only, or as writable again."""
    on_order: Callable[[bool], None]
    """An operator has ordered the bookie to be read-only, or has taken that back."""
    on_rollback: Callable[[MetadataError], None]
    """The metadata are in an older state than was seen."""
    on_superseded: Callable[[str], None]
    """Another process has started under this bookie's id: a sentence."""


@dataclass(frozen=True, slots=True)
class BookieParts:
    """Everything that works on an open disk; each part is described in its module."""

    engine: Volumes
    publisher: ProgressPublisher
    seen: SeenMetadata
    completion: Completion
    stale_adds: StaleAdds
    directories: LedgerDirectories
    bookie: Bookie
    order: ReadOnlyOrder
    garbage: GarbageCollector
    limbo: LimboLedgers
    damaged: SuspectRepairs
    rollback: RollbackWatch
    policy: PolicyFollower
    owners: OwnerLog
    access: LedgerPermissions
    reports: BookieReports

    def works(self) -> list[Coroutine[Any, Any, None]]:
        """What goes on while the bookie runs, until it is cancelled."""
        return [
            self.garbage.run(),
            self.limbo.run(),
            self.stale_adds.run(),
            self.damaged.run(),
            self.order.run(),
            self.publisher.run(self.engine, lambda: self.stale_adds.highest, self.reports.on_superseded),
            self.rollback.run(),
            self.seen.counter.run(self.seen.remember),
            self.directories.run(),
            self.policy.run(),
            self.access.run(),
        ]

    async def learn_access(self) -> None:
        """Read who may do what, and whose the ledgers here are: before anybody is served.

        Raises:
            MetadataError: the store does not answer.
            UnsupportedFormatError, OSError: the owners cannot be read.
        """
        if (damage := await self.owners.read()) is not None:
            log.error(
                "%s: the owners that it had are looked up in the metadata again, and a ledger that names none has none "
                "here until it is handed over (bk access hand-over)",
                damage,
            )
        await self.policy.read()
        await self.access.read_handed_over()


def build_bookie(
    start: BookieStart,
    engine: Volumes,
    publisher: ProgressPublisher,
    seen: SeenMetadata,
    metrics: Metrics,
    reports: BookieReports,
    *,
    checks_keys: bool,
    audit: AuditLog = NO_AUDIT,
) -> BookieParts:
    """The parts of one bookie.

    Args:
        engine: the open disk, of ``start``.
        audit: gets a line for each change of the access policy.
        checks_keys: whether clients are told apart, so that a ledger's key has to be its metadata's.
    """
    config, seams, metadata, bookie_id = start.config, start.seams, start.metadata, start.bookie_id
    completion = Completion(engine, metadata, bookie_id, config, seams, metrics)
    stale_adds = StaleAdds(engine, metadata, bookie_id, seams.disk, config.directory, start.disk_identity, completion)
    policy = PolicyFollower(
        metadata.access,
        seams.clock,
        metrics,
        reporter=AccessReporter(metadata.access_servers, BOOKIE, bookie_id),
        audit=audit,
    )
    owners = OwnerLog(seams.disk, config.directory, seams.workers.worker(f"{bookie_id} owners"))
    parts = BookieParts(
        engine=engine,
        publisher=publisher,
        seen=seen,
        completion=completion,
        stale_adds=stale_adds,
        directories=LedgerDirectories(engine, start, publisher, config, seams.disk, lambda: stale_adds.highest),
        bookie=_bookie(start, engine),
        order=ReadOnlyOrder(ReadOnlyOrders(metadata.store, metadata.paths), bookie_id, reports.on_order),
        garbage=GarbageCollector(engine, metadata, config, seams, metrics, seen),
        limbo=LimboLedgers(engine, metadata, bookie_id, reports.on_mode, stale_adds.cover, completion),
        damaged=SuspectRepairs(engine, bookie_id, completion, metrics, config.storage.scrub_bytes_per_s),
        rollback=RollbackWatch(metadata.store, metadata.present, reports.on_rollback),
        policy=policy,
        owners=owners,
        access=LedgerPermissions(engine, metadata, policy, owners, bookie_id, metrics),
        reports=reports,
    )
    if start.disk_identity is not None or engine.in_limbo:
        parts.bookie.stale_adds = stale_adds
    if checks_keys:
        parts.bookie.ledger_keys = LedgerKeys(engine, metadata, bookie_id, metrics)
    _connect_engine(parts, start, reports)
    return parts


def _bookie(start: BookieStart, engine: Volumes) -> Bookie:
    config = start.config
    return Bookie(
        engine,
        call_later=asyncio.get_running_loop().call_later,
        wall_ms=start.seams.clock.wall_ms,
        read_only=config.read_only,
        frame_max=config.frame_max,
        batch_read_bytes=config.batch_read_bytes,
        long_polls_max=config.long_polls_max,
        long_poll_max_s=config.long_poll_max_s,
    )


def _connect_engine(parts: BookieParts, start: BookieStart, reports: BookieReports) -> None:
    """Have the disk tell what it finds, and its scrub check the bookie's notes, too."""
    engine, bookie_id, disk, directory = parts.engine, start.bookie_id, start.seams.disk, start.config.directory
    engine.on_state(reports.on_state)
    engine.on_pressure(reports.on_pressure, reports.on_relief)

    def report(text: str, error: BaseException | None) -> None:
        log.error("bookie %s: %s", bookie_id, text, exc_info=error)

    engine.scrubber.report_problem = report
    engine.scrubber.state_files = lambda: check_state_files(disk, directory, parts.directories.in_use, bookie_id)
