"""Counts what tenants and owners have, and writes it where every server reads it. The auditor's process does it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bookkeeper.access import Mode, Policy
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.replication.inspection.usage import UsageCounter
from bookkeeper.seams import Clock

log = logging.getLogger(__name__)

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
                    log.warning("what tenants have could not be counted, the last count stands: %s", self._told)
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
