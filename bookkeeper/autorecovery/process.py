"""``bk autorecovery`` as a process: until a signal comes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.service import AutorecoveryService
from bookkeeper.client.bookkeeper import BookKeeper

EVERY_S = 0.5
"""Seconds between two looks for something to tell."""


async def serve(client: BookKeeper, name: str, config: AutorecoveryConfig, tell: Callable[[str], None]) -> None:
    """Audit and repair until SIGTERM or SIGINT. ``tell`` gets a line whenever the auditor does something else."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    service = AutorecoveryService(client, name, config)
    await service.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tell(f"autorecovery serves as {name}")
    telling = loop.create_task(_tell_changes(service, tell))
    try:
        await stop.wait()
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        await service.stop()


async def _tell_changes(service: AutorecoveryService, tell: Callable[[str], None]) -> None:
    auditing, repaired = service.auditor.doing, 0
    while True:
        report = service.report()
        if service.auditor.doing != auditing:
            auditing = service.auditor.doing
            tell(auditing)
        if report.repaired != repaired and not report.waiting and not report.working:
            repaired = report.repaired
            tell(f"{repaired} ledgers were repaired since the start, {report.copied_bytes} bytes copied")
        await asyncio.sleep(EVERY_S)
