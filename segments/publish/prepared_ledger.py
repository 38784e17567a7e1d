"""Shell: the ledger of a publisher's next small batch, made while nobody waits for it.

It is a staging of its own, which publishing that batch ends. Whoever cleans may give it up before; then the batch gets
a ledger as if there had been none. It is taken once, whatever becomes of the batch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from bookkeeper.errors import BookKeeperError
from segments.config import StreamConfig
from segments.errors import StreamError
from segments.publish.staged_writer import StagedWriter

_log = logging.getLogger(__name__)

OLD_S: Final = 15 * 60.0
"""One that was made longer ago is not taken: it may be given up soon."""


class PreparedLedger:
    """At most one ledger. Methods may be called side by side.

    Args:
        name: the stream's.
        monotonic: the clock, in seconds.
        make: the writer of a new staging, by its settings, its id and its application.
        new_staging: an id.
    """

    def __init__(
        self,
        name: str,
        monotonic: Callable[[], float],
        make: Callable[[StreamConfig, str, str], StagedWriter],
        new_staging: Callable[[], str],
    ) -> None:
        self._name, self._monotonic, self._make, self._new_staging = name, monotonic, make, new_staging
        self._changing = asyncio.Lock()
        self._made: tuple[StagedWriter, StreamConfig, str, float] | None = None
        """The writer, its settings, its application, and when it was made."""
        self._stagings: set[str] = set()
        self._ended = False

    @property
    def stagings(self) -> Collection[str]:
        """The stagings that are not left over: of the ledger, and of one that is being made."""
        return frozenset(self._stagings)

    async def prepare(self, config: StreamConfig, app: str) -> None:
        """Make the ledger, if there is none. What fails is told in the log: the batch gets one when it comes."""
        async with self._changing:
            if self._made is not None or self._ended:
                return
            staging = self._new_staging()
            writer = self._make(config, staging, app)
            self._stagings.add(staging)
            try:
                await writer.begin()
                self._made = writer, config, app, self._monotonic()
            except (BookKeeperError, StreamError) as error:
                _log.info("stream %s: no ledger was made ahead for the next batch: %s", self._name, error)
            finally:
                if self._made is None:
                    self._stagings.discard(staging)

    async def take(self, config: StreamConfig, app: str) -> StagedWriter | None:
        """The ledger, if it is that of a batch of ``app`` with these settings; the caller ends it. None: there is none,
        and an unfit one is left to whoever cleans."""
        async with self._changing:
            if self._made is None:
                return None
            (writer, made_with, made_for, made_at), self._made = self._made, None
            self._stagings.discard(writer.staging)
            if (made_with, made_for) == (config, app) and self._monotonic() < made_at + OLD_S:
                return writer
            await writer.abandon()
            return None

    async def end(self) -> Collection[str]:
        """Make no more. Returns the stagings that are left over."""
        async with self._changing:
            self._ended = True
            left, self._stagings = frozenset(self._stagings), set()
            if self._made is not None:
                (writer, *_), self._made = self._made, None
                await writer.abandon()
            return left
