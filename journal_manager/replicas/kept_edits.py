"""Whether a journal still has the edits that were durable: a standby follows no journal that was put back."""

from __future__ import annotations

import asyncio

from journal_manager.errors import ReplicaFailedError
from journal_manager.journals.backend import JournalReader
from journal_manager.replicas.known_edits import certain_end
from journal_manager.replicas.replica import Replica


class KeptEdits:
    """Compares the journal with what was durable before, while a standby's state is not there again."""

    def __init__(self, replica: Replica, doubt_s: float) -> None:
        self._replica, self._doubt_s = replica, doubt_s
        self._since: float | None = None
        """Since when the journal lacks edits that were durable."""

    async def check(self, reader: JournalReader) -> ReplicaFailedError | None:
        """The edits that are missing, as long as that may pass: a listing may be an old one for a while.

        Raises:
            ReplicaFailedError: they are missing for ``doubt_s`` seconds.
        """
        known, now = self._replica.known, asyncio.get_running_loop().time()
        lacking, self._since = self._since, None
        if known.txid <= self._replica.applied:
            return None
        segments = await reader.segments()
        known.without(await reader.discarded())
        known.ensure_same(segments)
        end = certain_end(segments)
        if end is None or known.txid <= end:
            return None
        self._since = now if lacking is None else lacking
        try:
            known.ensure_reached(end)
        except ReplicaFailedError as error:
            if now - self._since >= self._doubt_s:
                raise
            return error
        return None
