"""Follows the order to be read-only that an operator gives this bookie from afar."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.read_only import ReadOnlyOrders

log = logging.getLogger(__name__)

READ_S: Final = 60.0
"""Seconds after which the order is read again though no watch told of a change."""
RETRY_S: Final = 2.0
"""Seconds until the next try after the metadata could not be read."""


class ReadOnlyOrder:
    """Whether this bookie is ordered to be read-only. Runs on the loop's thread."""

    def __init__(self, orders: ReadOnlyOrders, bookie: BookieId, on_change: Callable[[bool], None]) -> None:
        self._orders = orders
        self._bookie = bookie
        self._on_change = on_change
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        """Set, and another one made, whenever the order was given or taken back."""
        self.by: str | None = None
        """Who gave the order; None: there is none."""

    async def read(self) -> bool:
        """Read the order now. Returns whether there is one. Raises: MetadataError."""
        self.by = await self._orders.read(self._bookie)
        return self.by is not None

    async def wait_until(self, *, ordered: bool) -> None:
        """Wait until this bookie knows that the order was given, or taken back."""
        while (self.by is not None) != ordered:
            await self._changed.wait()

    async def run(self) -> None:
        """Follow the order. While the metadata store is away the last one stands."""
        watch = self._orders.watch(self._bookie, self._wake.set)
        try:
            while True:
                before, pause = self.by, READ_S
                try:
                    ordered = await self.read()
                except BookKeeperError as error:
                    log.debug("the order to be read-only could not be read (%s): it is tried again", in_words(error))
                    pause = RETRY_S
                else:
                    if ordered != (before is not None):
                        self._log_change(before)
                        self._on_change(ordered)
                        changed, self._changed = self._changed, asyncio.Event()
                        changed.set()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), pause)
                self._wake.clear()
        finally:
            watch.close()

    def _log_change(self, before: str | None) -> None:
        if self.by is not None:
            log.warning(
                "bookie %s takes no new entries from now on: %s ordered it to be read-only (`bk bookies read-only %s "
                "--off` takes that back)",
                self._bookie,
                self.by,
                self._bookie,
            )
        else:
            log.warning("bookie %s takes new entries again: the order of %s was taken back", self._bookie, before)
