"""Autorecovery in one process: a candidate for auditor and a repair worker, over one client.

::

    service = AutorecoveryService(client, "host-1:4711", AutorecoveryConfig())
    await service.start()
    ...
    await service.stop()

Any number of processes may run one in the same cluster, Java's among them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bookkeeper.access import Mode, Policy
from bookkeeper.autorecovery.apache_names import ReplicationNames
from bookkeeper.autorecovery.auditor import Auditor
from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.autorecovery.worker import RepairWorker
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.meta.records.autorecovery import AutorecoveryNodes
from bookkeeper.metrics import Metrics
from bookkeeper.replication.inspection.usage import UsageCounter
from bookkeeper.seams import Clock

_log = logging.getLogger(__name__)

REPORT_S: Final = 2.0
"""Seconds between two reports."""
RETRY_S: Final = 1.0
"""Seconds until the metadata are asked again at the start."""


class AutorecoveryService:
    """Audits and repairs from :meth:`start` to :meth:`stop`."""

    def __init__(
        self,
        client: BookKeeper,
        name: str,
        config: AutorecoveryConfig | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """``metrics`` are kept up to date with the report."""
        self._metrics = metrics
        self._config = config or AutorecoveryConfig()
        self.name = name
        self._metadata = client.metadata_store
        self._records = AutorecoveryNodes(self._metadata.store, self._metadata.paths)
        self.auditor = Auditor(client, self._records, name, self._config)
        self.worker = RepairWorker(client, self._records, name, self._config)
        self.auditor.on_marked = self.worker.wakeup.ring
        self._apache_names = ReplicationNames(self.auditor.marked)
        if metrics is not None:
            metrics.include(self._apache_names.metrics)
        self.usage = UsageKeeper(client, client.services.seams.clock, lambda: self.auditor.elected)
        self._tasks: list[asyncio.Task[None]] = []
        self.published: AutorecoveryReport | None = None
        """What it last said of itself, without the time."""

    async def start(self) -> None:
        """Begin. It goes on by itself while the metadata store is away."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._run(), name="autorecovery")]

    async def stop(self) -> None:
        """End: copies that were begun are given up, the vote and the report are withdrawn. Idempotent."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks:
            try:
                await self._records.unpublish(self.name)
            except BookKeeperError as error:
                _log.info("the report of autorecovery stays until the session ends (%s)", in_words(error))

    async def _run(self) -> None:
        """Work until cancelled. Nothing that goes wrong ends it for good."""
        while True:
            try:
                await self._records.prepare(self._config.lost_bookie_delay_s)
                await self._work()
            except BookKeeperError as error:
                _log.warning("autorecovery waits for the metadata store (%s)", in_words(error))
            except Exception:  # nobody foresaw it
                _log.exception("autorecovery ended unexpectedly: it begins anew in %g s", RETRY_S)
            await asyncio.sleep(RETRY_S)

    async def _work(self) -> None:
        watch = self._metadata.bookies.watch(self.worker.retry_stuck)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.auditor.run(), name="auditor")
                group.create_task(self.worker.run(), name="repair worker")
                group.create_task(self.usage.run(), name="usage of tenants")
                group.create_task(self._publish(), name="report")
        finally:
            watch.close()

    def report(self) -> AutorecoveryReport:
        """What it does now, and what it cannot do."""
        auditor = self.auditor
        auditing = "; ".join(filter(None, (auditor.doing, auditor.checking, auditor.placed)))
        return replace(self.worker.report(self.name), auditor=auditor.elected, auditing=auditing)

    async def _publish(self) -> None:
        """Publish the report when it has changed, and now and then so that it outlives a session."""
        turns = 0
        while True:
            report = self.report()
            if self._metrics is not None:
                show_report(report, self._metrics)
                self._apache_names.show(report, asyncio.get_running_loop().time())
                text = "Bookies that the auditor holds to be lost; 0 where this process is not the auditor."
                self._metrics.gauge("autorecovery_lost_bookies", text).value = self.auditor.lost_bookies
            if turns % 10 == 0 or self.published is None or replace(report, updated_ms=0) != self.published:
                try:
                    await self._records.publish(self.name, report.encode())
                    self.published = replace(report, updated_ms=0)
                except BookKeeperError as error:
                    _log.info("the report of autorecovery could not be published (%s)", in_words(error))
            turns += 1
            await asyncio.sleep(REPORT_S)


def show_report(report: AutorecoveryReport, metrics: Metrics) -> None:
    """Set the metrics to what the report says."""
    gauges = {
        "autorecovery_is_auditor": ("Whether this process is the cluster's auditor.", report.auditor),
        "autorecovery_ledgers_working": ("Ledgers that are being repaired here now.", len(report.working)),
        "autorecovery_ledgers_waiting": ("Under-replicated ledgers that wait for a repair here.", report.waiting),
        "autorecovery_ledgers_stuck": ("Ledgers that could not be repaired so far.", report.stuck_count),
    }
    counters = {
        "autorecovery_ledgers_repaired_total": ("Ledgers that were made whole.", report.repaired),
        "autorecovery_ledgers_recovered_total": ("Open ledgers that were recovered, and so closed.", report.recovered),
        "autorecovery_copied_entries_total": ("Entries that were copied to other bookies.", report.copied_entries),
        "autorecovery_copied_bytes_total": ("Bytes of these entries.", report.copied_bytes),
    }
    for name, (text, value) in gauges.items():
        metrics.gauge(name, text).value = value
    for name, (text, total) in counters.items():
        metrics.counter(name, text).value = total


COUNT_S: Final = 60.0
"""Seconds from one count to the next, at least."""
SHARE: Final = 10
"""A pause is at least so many times as long as the count before it took."""


class UsageKeeper:
    """Counts every minute, or more seldom where that takes long, while a policy has quotas of what is kept.
    Runs on the loop's thread."""

    def __init__(self, client: BookKeeper, clock: Clock, is_auditor: Callable[[], bool]) -> None:
        self._metadata = client.metadata_store
        self._counter = UsageCounter(client)
        self._clock = clock
        self._is_auditor = is_auditor
        self._told = ""

    async def run(self) -> None:
        """Count until cancelled. What goes wrong is told once, and tried again."""
        while True:
            began = self._clock.monotonic()
            try:
                if self._is_auditor():
                    await self.count()
                self._told = ""
            except BookKeeperError as error:
                if in_words(error) != self._told:
                    self._told = in_words(error)
                    _log.warning("what tenants have could not be counted, the last count stands: %s", self._told)
            await asyncio.sleep(max(COUNT_S, SHARE * (self._clock.monotonic() - began)))

    async def count(self) -> bool:
        """Count now, if there is a quota that needs it. Returns whether there is. Raises: MetadataError."""
        found = await self._metadata.access.read()
        if found is None or not needs_count(found.value):
            return False
        counted = await self._counter.count(found.value, self._clock.wall_ms())
        await self._metadata.access.write_usage(counted.usage)
        return True


def needs_count(policy: Policy) -> bool:
    """Whether anybody has a quota of what is kept, and the policy is used."""
    quotas = [*(tenant.quota for tenant in policy.tenants), *(each.quota for each in policy.quotas)]
    kept = any(quota.bytes_kept is not None or quota.ledgers is not None for quota in quotas)
    return kept and policy.mode is not Mode.OFF
