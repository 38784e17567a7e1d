"""Waiting for what a request only begins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bookkeeper.launchers.machine_speed import stretch

PATIENCE_S = 30.0


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Ask until it holds. Raises: TimeoutError: it does not, for long."""
    async with asyncio.timeout(PATIENCE_S * stretch()):
        while not await condition():  # noqa: ASYNC110  # what is waited for is asked over HTTP
            await asyncio.sleep(0.02)
