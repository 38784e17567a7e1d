"""The way out of limbo: which ledgers the loss may concern, and when each is whole again.

After a start that may have lost acknowledged data every ledger, also one never seen, is in limbo: regular adds are
refused as fenced, negatives are unknown. What was lost can only be of ledgers that existed then. So

1. All ledgers are listed once, after a sync. Those whose metadata name this bookie, or cannot be read, and those that
   lie here without being listed, are *suspects*; all others are out of limbo, and so is every ledger that is created
   from then on: the bookie may be writable again. (A fence can be lost of a ledger that names this bookie no longer:
   regular adds to those that were listed are checked by :mod:`~bookkeeper.bookie.identity.stale_adds`.)
2. A suspect is out when it is closed and everything that its metadata say is here has been read and verified, or when
   its deletion was proved and its data collected. Somebody else closes it (a recovery); what is missing of it
   then is copied from the other bookies (:mod:`~bookkeeper.bookie.identity.completion`).
3. When no suspect is left the limbo is over, durably. A restart before that begins with the first step.

Why that is safe: an acknowledgement or an entry that was lost here concerns a ledger whose metadata named this bookie
at the time, and name it still: fragments in which something was acknowledged stay, and a recovery's changes enter
metadata with the close only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bookkeeper.bookie.identity.completion import Completion
from bookkeeper.bookie.identity.disk_identity import NO_LEDGER, naming, newest
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.storage.engine import Engine

log = logging.getLogger(__name__)

PASS_S: Final = 60.0
"""Seconds between two looks at the suspects."""


class SuspectLedgers:
    """Of a bookie that started in limbo."""

    def __init__(
        self,
        engine: Engine,
        metadata: Metadata,
        bookie: BookieId,
        on_change: Callable[[], None],
        cover: Callable[[LedgerId], None],
        completion: Completion,
    ) -> None:
        """
        Args:
            cover: told, before limbo is narrowed, up to which ledger a fence may be lost.
        """
        self._engine = engine
        self._metadata = metadata
        self._bookie = bookie
        self._on_change = on_change
        self._cover = cover
        self._completion = completion
        self._suspects: set[LedgerId] | None = None

    async def run(self) -> None:
        """Look again and again until the limbo is over; no error ends it."""
        while self._engine.in_limbo:
            try:
                await self.one_pass()
            except Exception:
                log.exception("this look at the ledgers in limbo proved nothing")
            if self._engine.in_limbo:
                await asyncio.sleep(PASS_S)

    async def one_pass(self) -> frozenset[LedgerId]:
        """The ledgers that are still in limbo afterwards.

        Raises:
            MetadataError: the store cannot say, or shows an older state than was seen.
        """
        if self._suspects is None:
            self._suspects = await self._all_suspects()
            self._engine.narrow_limbo(self._suspects)
            log.warning("limbo concerns %d ledgers; new ones are taken", len(self._suspects))
            self._on_change()
        for ledger in sorted(self._suspects):
            if await self._completion.is_whole(ledger):
                self._suspects.discard(ledger)
                self._engine.end_limbo(ledger)
        if not self._suspects:
            self._engine.end_limbo()
            self._engine.checkpoint(lambda error: None)
            log.warning("the limbo is over")
            self._on_change()
        return frozenset(self._suspects)

    async def _all_suspects(self) -> set[LedgerId]:
        local = set(self._engine.ledgers())
        await self._metadata.store.sync(self._metadata.paths.root)  # a stale listing would miss the newest ledgers
        listed = {ledger async for ledger in self._metadata.ledgers.list()}
        suspects = (local - listed) | await naming(self._metadata, self._bookie, listed)
        await self._metadata.present.check_fresh()  # at last: what was shown before is not older
        self._cover(await newest(self._metadata, max(listed | local, default=NO_LEDGER)))
        return suspects
