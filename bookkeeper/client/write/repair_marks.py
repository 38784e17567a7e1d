"""Enters a writer's ledger into the cluster's list of under-replicated ledgers."""

from __future__ import annotations

import logging

from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.missing_copies import MissingCopies
from bookkeeper.errors import MetadataError
from bookkeeper.ids import LedgerId

_log = logging.getLogger(__name__)


class RepairMarks:
    """The marks of one ledger, and what its writer knows to be missing."""

    def __init__(self, services: ClientServices, ledger_id: LedgerId, tasks: Tasks) -> None:
        self.missing = MissingCopies()
        self._services = services
        self._ledger_id = ledger_id
        self._tasks = tasks
        self._is_marking = False

    def mark_soon(self) -> None:
        """Mark the ledger in a task, which takes along what is found missing until it runs."""
        if not self._is_marking:
            self._is_marking = True
            self._tasks.start(self._mark_soon(), "mark as under-replicated")

    async def _mark_soon(self) -> None:
        self._is_marking = False  # copies that are found missing from here on need another mark
        await self.mark()

    async def mark(self) -> None:
        """Enter the ledger into the list. A failure is logged; the close tries it again."""
        ledger, marks = self._ledger_id, self._services.metadata.under_replication
        try:
            await marks.mark(ledger, list(self.missing.ranges), self._services.seams.clock.wall_ms())
        except MetadataError as error:
            _log.warning("ledger %d could not be entered into the list of under-replicated ledgers: %s", ledger, error)
