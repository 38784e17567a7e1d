"""``bk autorecovery`` as a process: until a signal comes."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bookkeeper.amounts import counted
from bookkeeper.audit import AuditConfig, open_audit_log
from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.report import AutorecoveryReport
from bookkeeper.autorecovery.service import AutorecoveryService
from bookkeeper.bookie.health.health import PageReply
from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.bookie.health.own_lag import OwnLag, watch_own_lag
from bookkeeper.bookie.http_api_config import HttpApiConfig
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import in_words
from bookkeeper.http_api.service import HttpApi
from bookkeeper.ids import Address
from bookkeeper.meta.store import SessionState
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Supervisor

if TYPE_CHECKING:
    from bookkeeper.bookie.health.health_pages import Health

EVERY_S = 0.5
"""Seconds between two looks for something to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesConfig:
    """What such a process shows over HTTP."""

    http: Address | None = None
    """Where it shows /healthz, /livez, /readyz and /metrics; None: nowhere."""
    api: HttpApiConfig = field(default_factory=HttpApiConfig)
    """The HTTP administration API."""
    audit: AuditConfig = field(default_factory=AuditConfig)
    """Where it is noted what was asked of the API."""


async def serve(
    client: BookKeeper,
    name: str,
    config: AutorecoveryConfig,
    tell: Callable[[str], None],
    shown: PagesConfig = PagesConfig(),
    supervisor: Supervisor | None = None,
) -> None:
    """Audit and repair until SIGTERM or SIGINT. ``tell`` gets a line whenever the auditor does something else.

    Raises:
        OSError: an address of ``shown`` cannot be had. Nothing was begun.
        ConfigError: the file of tokens or the audit log cannot be used.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    metrics = Metrics()
    service = AutorecoveryService(client, name, config, metrics)
    async with AsyncExitStack() as held:
        told = await _show(client, service, config, metrics, shown, held)
        await service.start()
        held.push_async_callback(service.stop)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        serves = f"autorecovery serves as {name}{told}"
        tell(serves)
        if supervisor is not None:
            supervisor.watch(loop)
            supervisor.ready(serves)
        await _run_until(stop, client, service, tell)
        if supervisor is not None:
            supervisor.stopping()


async def _show(
    client: BookKeeper,
    service: AutorecoveryService,
    config: AutorecoveryConfig,
    metrics: Metrics,
    shown: PagesConfig,
    held: AsyncExitStack,
) -> str:
    """Show pages and API; returns where, for people."""
    told = ""
    if shown.http is not None:
        pages = _pages(client, service, metrics, shown.http)
        held.callback(pages.close)
        told = f", http://{pages.address}"
    if shown.api.listen:
        seams = client.services.seams
        audit = open_audit_log(shown.audit, seams.clock, seams.disk, seams.workers, metrics)
        held.callback(audit.close)
        api = HttpApi(
            shown.api,
            client,
            name=service.name,
            settings=config,
            pages=_page_contents(client, service),
            metrics=metrics,
            audit=audit,
        )
        held.push_async_callback(api.close)
        await api.start()
        told += f", HTTP API http://{api.address}"
    return told


async def _run_until(
    stop: asyncio.Event, client: BookKeeper, service: AutorecoveryService, tell: Callable[[str], None]
) -> None:
    loop = asyncio.get_running_loop()
    clock = client.services.seams.clock
    lag = OwnLag(clock.monotonic(), clock.wall_ms())
    beside = [
        loop.create_task(_report_changes(service, tell)),
        loop.create_task(watch_own_lag(lag, clock, logging.getLogger(__name__))),
    ]
    try:
        await stop.wait()
    finally:
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)


def _page_contents(client: BookKeeper, service: AutorecoveryService) -> dict[str, Health]:
    store = client.metadata_store.store

    def condition() -> dict[str, Any]:
        connected = store.session is SessionState.CONNECTED
        return {"status": "ok" if connected else "the metadata store does not answer", "metadata": store.session.value}

    def whole() -> dict[str, Any]:
        return {**condition(), **asdict(service.published or AutorecoveryReport(service.name))}

    return {
        "/healthz": whole,
        "/livez": lambda: {"status": "ok"},
        "/readyz": condition,
        "/heartbeat": lambda: PageReply(200, "OK\n"),
    }


def _pages(client: BookKeeper, service: AutorecoveryService, metrics: Metrics, http: Address) -> HealthServer:
    worker = client.services.seams.workers.worker("autorecovery http")
    try:
        return HealthServer.start(http, _page_contents(client, service), metrics, lambda: None, worker)
    except OSError as error:
        text = f"cannot listen at {http} for health and metrics: {in_words(error)}; choose another --http"
        raise OSError(error.errno, text) from error


async def _report_changes(service: AutorecoveryService, tell: Callable[[str], None]) -> None:
    auditing, repaired = service.auditor.doing, 0
    while True:
        report = service.report()
        if service.auditor.doing != auditing:
            auditing = service.auditor.doing
            tell(auditing)
        if report.repaired != repaired and not report.waiting and not report.working:
            repaired = report.repaired
            ledgers = counted(repaired, "ledger", "was", "were")
            tell(f"{ledgers} repaired since the start, {report.copied_bytes} bytes copied")
        await asyncio.sleep(EVERY_S)
