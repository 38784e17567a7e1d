"""The long polls of one reader that are under way: the one that is waited for, and the next one ahead of its time.

A reader that gets entries quickly sends the poll for the entry after the next one ahead. So an entry that is confirmed
while the one before it travels comes at once.

    sent ahead ---> taken over as the poll that is waited for
         |
         +--------> answered before that: its entry is kept until it is asked for

Pure: polls, replies and times in, decisions out.
"""

from __future__ import annotations

from typing import Final

from bookkeeper.ids import EntryId
from bookkeeper.ledger import Entry
from bookkeeper.ledger.read import Poll

QUICK_S: Final = 0.1
"""A poll that brings an entry within so many seconds is followed by one ahead. A reader to whom less comes would ask
twice as often for nothing."""


class PendingPoll:
    """A long poll that was sent at the loop's time ``sent_at``."""

    __slots__ = ("poll", "sent_at")

    def __init__(self, poll: Poll, began: float) -> None:
        self.poll = poll
        self.sent_at = began


class PollAhead:
    """At most one poll ahead, and at most one entry that such a poll has brought."""

    __slots__ = ("_entry", "_quick", "pending")

    def __init__(self) -> None:
        self.pending: PendingPoll | None = None
        """The poll ahead that is under way."""
        self._entry: Entry | None = None
        self._quick = False

    def take_over(self, poll: Poll, now: float) -> PendingPoll | None:
        """The poll that was asked ahead, if it asks what ``poll`` asks and has time left. One that does not is
        forgotten."""
        asked, self.pending = self.pending, None
        if asked is None or (asked.poll.bookie, asked.poll.previous_lac) != (poll.bookie, poll.previous_lac):
            return None
        return asked if now < asked.sent_at + asked.poll.timeout_ms / 1000 else None

    def next(self, poll: Poll) -> Poll | None:
        """What to ask ahead while ``poll`` is waited for, if anything."""
        return Poll(poll.bookie, EntryId(poll.previous_lac + 1), poll.timeout_ms) if self._quick else None

    def on_answered(self, asked: PendingPoll, entry: Entry | None, now: float) -> None:
        """The poll that was waited for was answered."""
        self._quick = entry is not None and now - asked.sent_at < QUICK_S

    def on_answered_early(self, entry: Entry | None) -> None:
        """The poll ahead was answered before anybody waited for it."""
        self.pending, self._entry = None, entry

    def take(self, entry_id: int) -> bytes | None:
        """The payload of an entry that a poll ahead has brought; it is handed out once."""
        if (came := self._entry) is None or came.entry_id > entry_id:
            return None
        self._entry = None
        return came.payload if came.entry_id == entry_id else None
