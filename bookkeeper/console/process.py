"""``bk console`` as a process: until a signal comes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack

from bookkeeper.audit import AuditConfig, open_audit_log
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.console.config import ConsoleConfig
from bookkeeper.console.panel_book import load_panels
from bookkeeper.console.service import ConsoleServer
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Supervisor


async def serve(
    client: BookKeeper,
    name: str,
    metadata_uri: str,
    config: ConsoleConfig,
    tell: Callable[[str], None],
    audit: AuditConfig,
    supervisor: Supervisor | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. ``tell`` gets a line when it serves.

    Raises:
        OSError: the address cannot be had.
        ConfigError: the file of tokens, the certificate or the audit log cannot be used.
    """
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    seams, metrics = client.services.seams, Metrics()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as held:
        log = open_audit_log(audit, seams.clock, seams.disk, seams.workers, metrics)
        held.callback(log.close)
        panels, unusable = load_panels()
        server = ConsoleServer(
            config,
            client,
            name=name,
            metadata_uri=metadata_uri,
            panels=panels,
            unusable=unusable,
            metrics=metrics,
            audit=log,
        )
        held.push_async_callback(server.close)
        await server.start()
        serves = f"the console serves at {server.url}"
        tell(serves)
        if supervisor is not None:
            supervisor.watch(loop)
            supervisor.ready(serves)
        await stop.wait()
        if supervisor is not None:
            supervisor.stopping()
