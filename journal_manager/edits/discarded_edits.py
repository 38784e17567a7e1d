"""Which edits were discarded, so that their ids were, or will be, used again (pure).

An id alone does not say which edit is meant: after ``discard``, a roll-back or ``format`` other edits get the same ids.
An id together with an epoch does. Whoever discards edits may log nothing afterwards: later edits have a higher epoch.

    (txid, epoch)    the edit with this id, of a segment that was begun in this epoch; or a state that holds every edit
                     up to ``txid`` and was right in this epoch
    Cut(first, e)    the edits from ``first`` on that were there in epoch e are gone, and so is every state with them
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from journal_manager.txid import TxId

UNKNOWN_EPOCH: Final = 0
"""Of a state whose epoch nobody wrote down: it is as old as can be, so that each cut below it applies to it."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Edits that were discarded at one time."""

    first: TxId
    epoch: int
    """The epoch of the owner who discarded them."""

    def covers(self, txid: TxId, epoch: int) -> bool:
        """Whether this edit, or a state that holds it, was discarded here."""
        return txid >= self.first and epoch <= self.epoch


@dataclass(frozen=True, slots=True)
class DiscardedEdits:
    """All that was ever discarded from a journal."""

    cuts: tuple[Cut, ...] = ()
    """In order of their epochs; a cut that a later one contains is left out, so the first ids rise, too."""
    journal: str = ""
    """Tells the journal from others, whose epochs count something else; empty if nothing was discarded."""

    def __bool__(self) -> bool:
        return bool(self.cuts)

    @property
    def epoch(self) -> int:
        """The epoch in which edits were last discarded; 0 if they never were."""
        return self.cuts[-1].epoch if self.cuts else UNKNOWN_EPOCH

    def covers(self, txid: TxId, epoch: int) -> bool:
        """Whether this edit, or a state that holds every edit up to it, was discarded. An epoch that is not known
        (``UNKNOWN_EPOCH``) comes before every cut."""
        return any(cut.covers(txid, epoch) for cut in self.cuts)

    def first_after(self, epoch: int) -> TxId | None:
        """The lowest id that was discarded since ``epoch``; None if none was."""
        return min((cut.first for cut in self.cuts if epoch <= cut.epoch), default=None)

    def adding(self, first: TxId, epoch: int, journal: str) -> DiscardedEdits:
        """The same, and the edits from ``first`` on that are there in ``epoch``. ``journal`` is used the first time."""
        kept = (cut for cut in self.cuts if cut.first < first)
        return DiscardedEdits((*kept, Cut(first, epoch)), self.journal or journal)


NOTHING_DISCARDED: Final = DiscardedEdits()
