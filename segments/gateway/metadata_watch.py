"""Whether the metadata store answers, by periodic reads: a session may seem connected long after the store is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bookkeeper.errors import BookKeeperError
from bookkeeper.seams import Clock
from segments.gateway.config import GrpcGatewayConfig


@dataclass(slots=True)
class StoreHealth:
    """The answers of the store. Pure; times are seconds of a monotonic clock."""

    unreachable_s: float
    answered_at: float

    def answered(self, now: float) -> None:
        """Note an answer."""
        self.answered_at = now

    def is_reachable(self, now: float) -> bool:
        """Whether the store has answered lately."""
        return now - self.answered_at < self.unreachable_s


class MetadataWatch:
    """Probes the store, and calls back when it becomes reachable or unreachable."""

    def __init__(
        self,
        probe: Callable[[], Awaitable[object]],
        on_change: Callable[[bool], Awaitable[None]],
        clock: Clock,
        config: GrpcGatewayConfig,
    ) -> None:
        """``probe`` reads something. ``on_change`` gets whether the store answers."""
        self._probe = probe
        self._on_change = on_change
        self._clock = clock
        self._config = config
        self._health = StoreHealth(config.unreachable_s, clock.monotonic())
        self._notified: bool | None = None

    @property
    def is_reachable(self) -> bool:
        """Whether the store has answered lately."""
        return self._health.is_reachable(self._clock.monotonic())

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            asking = asyncio.ensure_future(self._probe_once())
            try:
                while not asking.done():
                    await asyncio.wait([asking], timeout=self._config.probe_s)
                    await self._notify()
            finally:
                asking.cancel()
            await asyncio.sleep(self._config.probe_s)

    async def _probe_once(self) -> None:
        try:
            async with asyncio.timeout(self._config.unreachable_s):
                await self._probe()
        except (BookKeeperError, TimeoutError):
            return
        self._health.answered(self._clock.monotonic())

    async def _notify(self) -> None:
        if (now := self.is_reachable) is not self._notified:
            self._notified = now
            await self._on_change(now)
