"""``bk autorecovery`` as a process: until a signal comes."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.autorecovery.service import AutorecoveryService
from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.bookie.health.own_lag import OwnLag, watch_own_lag
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import in_words
from bookkeeper.ids import Address
from bookkeeper.meta.store import SessionState
from bookkeeper.metrics import Metrics

EVERY_S = 0.5
"""Seconds between two looks for something to tell."""


async def serve(
    client: BookKeeper, name: str, config: AutorecoveryConfig, tell: Callable[[str], None], http: Address | None = None
) -> None:
    """Audit and repair until SIGTERM or SIGINT. ``tell`` gets a line whenever the auditor does something else.

    At ``http`` it shows /healthz, /livez, /readyz and /metrics.

    Raises:
        OSError: that address cannot be had. Nothing was begun.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    metrics = Metrics()
    service = AutorecoveryService(client, name, config, metrics)
    pages = _pages(client, service, metrics, http) if http is not None else None
    await service.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tell(f"autorecovery serves as {name}" + (f", http://{pages.address}" if pages is not None else ""))
    clock = client.services.seams.clock
    lag = OwnLag(clock.monotonic(), clock.wall_ms())
    beside = [
        loop.create_task(_tell_changes(service, tell)),
        loop.create_task(watch_own_lag(lag, clock, logging.getLogger(__name__))),
    ]
    try:
        await stop.wait()
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
        await service.stop()
        if pages is not None:
            pages.close()


def _pages(client: BookKeeper, service: AutorecoveryService, metrics: Metrics, http: Address) -> HealthServer:
    store = client.metadata_store.store

    def condition() -> dict[str, Any]:
        connected = store.session is SessionState.CONNECTED
        return {"status": "ok" if connected else "the metadata store does not answer", "metadata": store.session.value}

    def whole() -> dict[str, Any]:
        return {**condition(), **asdict(service.published or AutorecoveryReport(service.name))}

    shown: dict[str, Callable[[], dict[str, Any]]] = {
        "/healthz": whole,
        "/livez": lambda: {"status": "ok"},
        "/readyz": condition,
    }
    worker = client.services.seams.workers.worker("autorecovery http")
    try:
        return HealthServer.start(http, shown, metrics, lambda: None, worker)
    except OSError as error:
        text = f"cannot listen at {http} for health and metrics: {in_words(error)}; choose another --http"
        raise OSError(error.errno, text) from error


async def _tell_changes(service: AutorecoveryService, tell: Callable[[str], None]) -> None:
    auditing, repaired = service.auditor.doing, 0
    while True:
        report = service.report()
        if service.auditor.doing != auditing:
            auditing = service.auditor.doing
            tell(auditing)
        if report.repaired != repaired and not report.waiting and not report.working:
            repaired = report.repaired
            ledgers = "1 ledger was" if repaired == 1 else f"{repaired} ledgers were"
            tell(f"{ledgers} repaired since the start, {report.copied_bytes} bytes copied")
        await asyncio.sleep(EVERY_S)
