"""The way out of limbo: finds the ledgers that a loss may concern, and ends limbo for each when it is whole again.

After a start that may have lost acknowledged data, every ledger is in limbo, also one that was never seen here: the
bookie refuses regular adds as fenced, and answers "unknown" where it would say "no such entry". The loss can only
concern ledgers that existed then. So

1. The bookie lists all ledgers once, after a sync. A ledger stays in limbo if its metadata name this bookie or
   cannot be read, or if it lies here and is not listed. All other ledgers leave limbo, and ledgers that are created
   later are never in it: the bookie may be writable again. (The bookie may also have lost a fence of a ledger that no
   longer names it. So :mod:`~bookkeeper.bookie.identity.stale_adds` checks regular adds to all ledgers that were
   listed.)
2. A ledger leaves limbo when it is closed and the bookie has read and verified everything that its metadata say is
   here, or when its deletion is proved and its data are collected. Somebody else closes it (a recovery). What is
   missing then is copied from the other bookies (:mod:`~bookkeeper.bookie.identity.completion`).
3. When none is left, limbo is over, durably. A restart before that begins with the first step.

Why that is safe: a lost acknowledgement or entry concerns a ledger whose metadata named this bookie at the time. They
name it still: a fragment in which something was acknowledged stays, and a recovery changes metadata only when it
closes the ledger.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.bookie.identity.completion import Completion
from bookkeeper.bookie.identity.disk_identity import NO_LEDGER, naming, newest
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.storage.base.results import ignore
from bookkeeper.volumes import Volumes

log = logging.getLogger(__name__)

PASS_S: Final = 60.0
"""Seconds between two passes over the ledgers in limbo."""


class LimboLedgers:
    """The ledgers in limbo, of a bookie whose start found a loss."""

    def __init__(
        self,
        engine: Volumes,
        metadata: Metadata,
        bookie: BookieId,
        on_change: Callable[[], None],
        cover: Callable[[LedgerId], None],
        completion: Completion,
    ) -> None:
        """
        Make it for one start; :meth:`run` does the work.

        Args:
            cover: called before limbo is narrowed, with the greatest ledger id of which a fence may be lost.
        """
        self._engine = engine
        self._metadata = metadata
        self._bookie = bookie
        self._on_change = on_change
        self._cover = cover
        self._completion = completion
        self._left: set[LedgerId] | None = None
        """The ledgers that are still in limbo; None: not known yet, so every ledger is."""

    async def run(self) -> None:
        """Make passes until limbo is over. Errors are logged, and the next pass tries again."""
        while self._engine.in_limbo:
            try:
                await self.one_pass()
            except Exception:
                log.exception(
                    "bookie %s could not check the ledgers in limbo: they stay in limbo, and it tries again in %g s",
                    self._bookie,
                    PASS_S,
                )
            if self._engine.in_limbo:
                await asyncio.sleep(PASS_S)

    async def one_pass(self) -> frozenset[LedgerId]:
        """Check each of them once. Returns the ledgers that are still in limbo.

        Raises:
            MetadataError: the store does not answer, or shows an older state than was seen.
        """
        if self._left is None:
            self._left = await self._concerned()
            self._engine.narrow_limbo(self._left)
            log.warning(
                "bookie %s: %s in limbo until closed and whole here; it takes new ledgers again",
                self._bookie,
                counted(len(self._left), "ledger", "is", "are"),
            )
            self._on_change()
        for ledger in sorted(self._left):
            if await self._completion.is_whole(ledger):
                self._left.discard(ledger)
                self._engine.end_limbo(ledger)
        if not self._left:
            self._engine.end_limbo()
            self._engine.checkpoint(ignore)
            log.info("bookie %s: limbo has ended, every ledger is whole here again", self._bookie)
            self._on_change()
        return frozenset(self._left)

    async def _concerned(self) -> set[LedgerId]:
        local = set(self._engine.ledgers())
        await self._metadata.store.sync(self._metadata.paths.root)  # a stale listing would miss the newest ledgers
        listed = {ledger async for ledger in self._metadata.ledgers.list()}
        listed |= {ledger async for ledger in self._metadata.ledgers.restorable.all()}
        concerned = (local - listed) | await naming(self._metadata, self._bookie, listed)
        await self._metadata.present.check_fresh()  # at last: what was shown before is not older
        self._cover(await newest(self._metadata, max(listed | local, default=NO_LEDGER)))
        return concerned
