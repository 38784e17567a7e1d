"""Learns which bookies answer batch reads. Older bookies close the connection; others have batch reads switched off.

The states of each bookie:

                ┌──▶ a batch read is answered ──▶ ANSWERS      a lost connection is no doubt of it
    UNKNOWN ────┤
                ├──▶ a batch read cost the connection ──▶ DOUBTED ──▶ and once more ──▶ REFUSES
                │
                └──▶ it calls a batch read a bad request (from any state) ────────────▶ REFUSES

A bookie that refuses is asked for single entries from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from bookkeeper.errors import BadRequestError, BookieUnavailableError, BookKeeperError
from bookkeeper.ids import BookieId

STRIKES: Final = 2
"""After so many batch reads that cost the connection, and none that was answered, a bookie counts as refusing."""


class BatchReads(Enum):
    """What is known of one bookie."""

    UNKNOWN = "unknown"
    DOUBTED = "doubted"
    ANSWERS = "answers"
    REFUSES = "refuses"


class BatchSupport:
    """What is known of the bookies of one ledger."""

    __slots__ = ("_answer", "_refuse", "_strikes")

    def __init__(self) -> None:
        self._refuse: set[BookieId] = set()
        self._answer: set[BookieId] = set()
        self._strikes: dict[BookieId, int] = {}

    def of(self, bookie: BookieId) -> BatchReads:
        """What is known of ``bookie``."""
        if bookie in self._refuse:
            return BatchReads.REFUSES
        if bookie in self._answer:
            return BatchReads.ANSWERS
        return BatchReads.DOUBTED if bookie in self._strikes else BatchReads.UNKNOWN

    def asks_batches(self, bookie: BookieId) -> bool:
        """Whether ``bookie`` may be asked for a batch."""
        return bookie not in self._refuse

    def asks_any(self, bookies: Iterable[BookieId]) -> bool:
        """Whether any of ``bookies`` may be asked for a batch. If not, the caller keeps single reads in flight."""
        return not self._refuse.issuperset(bookies)

    def on_answered(self, bookie: BookieId) -> None:
        """A batch read was answered."""
        self._answer.add(bookie)
        self._strikes.pop(bookie, None)

    def on_failed(self, bookie: BookieId, error: BookKeeperError) -> bool:
        """A batch read failed. True: ask for a single entry instead; False: the bookie has failed."""
        if isinstance(error, BadRequestError):
            self._refuse.add(bookie)
            return True
        if not isinstance(error, BookieUnavailableError) or bookie in self._answer:
            return False
        self._strikes[bookie] = self._strikes.get(bookie, 0) + 1
        if self._strikes[bookie] >= STRIKES:
            self._refuse.add(bookie)
        return True

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert not self._answer & self._strikes.keys(), "a bookie that answers is in doubt"
        for bookie, strikes in self._strikes.items():
            assert strikes > 0
            assert strikes < STRIKES or bookie in self._refuse, "too many strikes, and it is asked"
