"""Logs the replacements of a writer's failed bookies."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from bookkeeper.client.write.add_channel import AddChannel
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger.write import ChangeFailure

_log = logging.getLogger(__name__)

_RETRIED: Final = (ChangeFailure.NO_SPARE, ChangeFailure.STORE_AWAY)


class ChangeLog:
    """The lines about one ledger's ensemble. A change that fails is retried every second, and logged once."""

    def __init__(self, ledger_id: LedgerId) -> None:
        self._ledger_id = ledger_id
        self._reported: tuple[tuple[BookieId, ...], ChangeFailure] | None = None
        self._channels: dict[BookieId, AddChannel] = {}
        """The newest channel to each bookie of the ensemble, also if it has failed."""

    def track(self, channel: AddChannel) -> AddChannel:
        """Take the request ids of this channel into lines about its bookie. Returns the channel."""
        self._channels[channel.bookie] = channel
        return channel

    def log_failed(self, failed: tuple[BookieId, ...], failure: ChangeFailure) -> None:
        """Failed bookies were not replaced."""
        is_new, self._reported = (failed, failure) != self._reported, (failed, failure)
        level = logging.DEBUG if not is_new else logging.WARNING if failure in _RETRIED else logging.INFO
        text = "ledger %d: failed bookies (%s) are not replaced: %s"
        _log.log(level, text, self._ledger_id, self._named(failed), failure.value, extra=self._fields(failed))

    def log_changed(self, first_entry: EntryId, members: Sequence[BookieId], failed: Sequence[BookieId]) -> None:
        """An ensemble change was committed, away from the bookies that failed."""
        self._reported = None
        text = "ledger %d: the ensemble was changed; entries from %d on are stored by %s, and no more by %s"
        stored_by = ", ".join(members)
        fields = self._fields(failed)
        _log.info(text, self._ledger_id, first_entry, stored_by, self._named(failed), extra=fields)
        for bookie in [bookie for bookie in self._channels if bookie not in members]:
            del self._channels[bookie]

    def log_returned(self, bookie: BookieId) -> None:
        """A failed bookie answers again."""
        self._reported = None
        _log.info("ledger %d: %s answers again", self._ledger_id, bookie)

    def _named(self, bookies: Iterable[BookieId]) -> str:
        """The bookies, each with the request ids that its own log has for the adds."""
        ids = self._request_ids(bookies)
        return ", ".join(f"{bookie} [requests {ids[bookie]}]" if bookie in ids else bookie for bookie in bookies)

    def _request_ids(self, bookies: Iterable[BookieId]) -> dict[BookieId, str]:
        found = {bookie: self._channels[bookie].request_ids for bookie in bookies if bookie in self._channels}
        return {bookie: ids for bookie, ids in found.items() if ids}

    def _fields(self, bookies: Iterable[BookieId]) -> dict[str, object]:
        """Additional fields of a line in JSON."""
        return {"ledger": self._ledger_id, "request_ids": self._request_ids(bookies)}
