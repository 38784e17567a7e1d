"""Repairs what damage on the disk has taken: the ledgers that a scrub, a reader or a compaction has
made suspect.

Until such a ledger is whole here again, the bookie does not say which entries of it are here. It is not in limbo: the
index knows its fence and its key, so writers go on, and what the index does not know was never here, so recoveries go
on, too. When it is closed the bookie reads everything that its metadata say is here, and what
cannot be read is copied from the other bookies (:mod:`~bookkeeper.bookie.identity.completion`). An open ledger waits
until somebody closes it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.bookie.identity.completion import Completion
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.metrics import Metrics
from bookkeeper.volumes import Volumes

log = logging.getLogger(__name__)

PASS_S: Final = 60.0
"""Seconds between two passes over the ledgers that are not whole yet."""


class SuspectRepairs:
    """Repairs the suspect ledgers of one bookie. Runs on the loop's thread."""

    def __init__(
        self, engine: Volumes, bookie: BookieId, completion: Completion, metrics: Metrics, read_bytes_per_s: int
    ) -> None:
        """
        Args:
            read_bytes_per_s: how fast the copies are read that are to be whole; 0: no limit.
        """
        self._read_bytes_per_s = read_bytes_per_s
        self._engine, self._bookie, self._completion = engine, bookie, completion
        self._new = asyncio.Event()
        self._repaired = metrics.counter(
            "scrub_repaired_ledgers_total", "Ledgers that were suspect and are whole here again."
        )
        self.whole = 0
        """How many ledgers have become whole again since this start."""
        engine.scrubber.on_suspects(self._new.set)

    def sentences(self) -> tuple[str, ...]:
        """What has been repaired, for people."""
        return (f"{counted(self.whole, 'suspect ledger', 'is', 'are')} whole here again",) if self.whole else ()

    async def run(self) -> None:
        """Make passes while there are suspects, until cancelled. Errors are logged, and the next pass tries again."""
        while True:
            if not self._engine.suspects:
                await self._new.wait()
            self._new.clear()
            try:
                await self.one_pass()
            except BookKeeperError as error:
                log.warning(
                    "bookie %s could not check its suspect ledgers (%s): it tries again", self._bookie, in_words(error)
                )
            except Exception:
                log.exception("bookie %s could not check its suspect ledgers: it tries again", self._bookie)
            if self._engine.suspects:
                try:
                    async with asyncio.timeout(PASS_S):
                        await self._new.wait()
                except TimeoutError:
                    pass

    async def one_pass(self) -> frozenset[int]:
        """Check every suspect once. Returns those that are left.

        Raises:
            MetadataError: the store does not answer, or shows an older state than was seen.
        """
        for ledger in map(LedgerId, sorted(self._engine.suspects)):
            suspicion = self._engine.suspicion(ledger)
            whole = await self._completion.is_whole(ledger, read_bytes_per_s=self._read_bytes_per_s)
            if whole and self._engine.end_suspicion(ledger, suspicion):
                self._repaired.add()
                self.whole += 1
                log.info("bookie %s: ledger %d is whole here again after damage", self._bookie, ledger)
        return self._engine.suspects
