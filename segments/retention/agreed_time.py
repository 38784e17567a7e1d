"""The time by which something may be removed: the earliest of what several clocks say.

A wall clock that jumps, or was wrong when the program began, would make segments old and end holds. So a time counts
only as far as three agree:

    the wall clock here
    what it said when this began, and the monotonic time since
    the metadata store's wall clock, where that is another machine's

An earlier time removes less, so the earliest counts.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import KeyExistsError, NoSuchKeyError

if TYPE_CHECKING:
    from bookkeeper import BookKeeper
    from segments.chain import StreamHead

_log = logging.getLogger(__name__)

APART_MS: Final = 60_000
"""Clocks that differ by more are told in the log."""


class AgreedTime:
    """Time for one stream, from the moment at which this was made."""

    def __init__(self, client: BookKeeper, node: StreamHead) -> None:
        self._client, self._node = client, node
        self._clock = client.services.seams.clock
        self._wall_ms, self._monotonic = self._clock.wall_ms(), self._clock.monotonic()
        self.behind_ms = 0
        """How far the wall clock here is behind the metadata store's, as ``now_ms`` has seen it; 0 for a minute."""

    def here_ms(self) -> int:
        """Milliseconds since 1970 by the clocks of this machine, which a step of the wall clock does not put on."""
        return min(self._clock.wall_ms(), self._wall_ms + int((self._clock.monotonic() - self._monotonic) * 1000))

    async def now_ms(self) -> int:
        """The same, and never later than the metadata store's clock says. Costs three calls of the store.

        Raises: BookKeeper's metadata errors.
        """
        here, stored = self.here_ms(), await self._stored_ms()
        if not stored:
            return here
        self.behind_ms = behind if (behind := stored - here) > APART_MS else 0
        if here - stored > APART_MS:
            _log.warning(
                "the clock of this machine is %.0f s ahead of the metadata store's: by the latter what is in stream %s "
                "is younger, and holds end later",
                (here - stored) / 1000,
                self._node.name,
            )
        return min(here, stored)

    async def _stored_ms(self) -> int:
        """When the store makes a value, by its clock; 0 if it does not tell."""
        metadata = self._client.metadata_store
        store, rng = metadata.store, self._client.services.seams.rng
        while True:
            path = metadata.own("segments", "time", f"{rng.getrandbits(64):016x}")
            try:
                await store.create(path, ephemeral=True, parents=True)
                created_ms = (await store.get(path)).created_ms
                await store.delete(path, None)
            except (KeyExistsError, NoSuchKeyError):
                continue  # the session ended, and the value with it
            return created_ms
