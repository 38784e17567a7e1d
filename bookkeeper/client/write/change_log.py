"""Tells the log what became of a writer's failed bookies."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger.write import ChangeFailure

_log = logging.getLogger(__name__)

_TRIED_AGAIN: Final = (ChangeFailure.NO_SPARE, ChangeFailure.STORE_AWAY)


class ChangeLog:
    """The lines about one ledger's ensemble. A change that fails is tried every second, and told once."""

    def __init__(self, ledger_id: LedgerId) -> None:
        self._ledger_id = ledger_id
        self._told: tuple[tuple[BookieId, ...], ChangeFailure] | None = None

    def failed(self, failed: tuple[BookieId, ...], failure: ChangeFailure) -> None:
        """Failed bookies were not replaced."""
        is_new, self._told = (failed, failure) != self._told, (failed, failure)
        level = logging.DEBUG if not is_new else logging.WARNING if failure in _TRIED_AGAIN else logging.INFO
        text = "ledger %d: failed bookies (%s) are not replaced: %s"
        _log.log(level, text, self._ledger_id, ", ".join(failed), failure.value)

    def changed(self, first_entry: EntryId, members: Sequence[BookieId]) -> None:
        """An ensemble change was committed."""
        self._told = None
        text = "ledger %d: the ensemble was changed; entries from %d on are stored by %s"
        _log.info(text, self._ledger_id, first_entry, ", ".join(members))

    def returned(self, bookie: BookieId) -> None:
        """A failed bookie answers again."""
        self._told = None
        _log.info("ledger %d: %s answers again", self._ledger_id, bookie)
