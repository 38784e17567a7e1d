"""Looks at the cluster once a second, and keeps the picture up to date."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from bookkeeper import BookKeeper, Operator
from bookkeeper.autorecovery.status import status_of
from bookkeeper.errors import BookKeeperError
from examples.demo_heal.view import HealPicture, HealView
from examples.demo_heal.writers import LedgerWriters
from examples.demo_kit.cluster import DemoCluster

_EVERY_S: Final = 1.0
SMALL: Final = "b3"
"""The bookie with the small disk."""


def bytes_below(directory: Path) -> int:
    """Bytes of all files below a directory; those that vanish meanwhile count nothing."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(folder, name)).st_size
    return total


class ClusterWatch:
    """Watches until it is cancelled."""

    def __init__(self, client: BookKeeper, cluster: DemoCluster, picture: HealPicture, view: HealView) -> None:
        self._client = client
        self._operator = Operator(client)
        self._cluster = cluster
        self._picture = picture
        self._view = view
        self.writers: LedgerWriters | None = None
        self.special: dict[str, str] = {}
        """Bookies of which more is known than the metadata say: ``lost``, ``retired``."""

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except BookKeeperError as error:
                self._picture.auditing = str(error)
            self._view.looked()
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> None:
        """Bring the picture up to date. Raises: BookKeeperError."""
        picture, metadata = self._picture, self._client.metadata_store
        writable, read_only = await metadata.bookies.writable(), await metadata.bookies.read_only()
        known = {*await metadata.bookies.known(), *self.special}
        picture.bookies = {
            name: "writable"
            if name in writable
            else "read-only"
            if name in read_only
            else self.special.get(name, "absent")
            for name in sorted({*known, *writable, *read_only})
        }
        picture.ledgers = len([ledger async for ledger in self._client.list_ledgers()])
        if self.writers is not None:
            picture.acknowledged = self.writers.acknowledged
        status = await status_of(metadata)
        picture.under_replicated, picture.stuck = len(status.marked), {int(k): why for k, why in status.stuck.items()}
        for report in status.reports:
            picture.repaired, picture.working = report.repaired, report.working
            picture.copied_bytes, picture.copied_entries = report.copied_bytes, report.copied_entries
            picture.auditing = report.auditing
        stored = {name: await self.stored_by(name) for name in list(self._cluster.bookies)}
        picture.stored = stored

    async def stored_by(self, name: str) -> int:
        """Bytes on a bookie's disk; 0 if they are not known."""
        if name == SMALL and self._cluster.has_small_disk:
            try:
                info = await self._operator.bookie_info(name)
            except BookKeeperError:
                return 0
            return (info.total or 0) - (info.free or 0)
        return await asyncio.to_thread(bytes_below, self._cluster.entry_logs(name))
