"""Decides which marked ledger a worker repairs next. Pure.

    A8  One ledger that cannot be repaired never delays the others, and its reason can be read.
    A9  The queue is what was listed last; a ledger that is no longer marked is forgotten.

A ledger that could not be repaired waits for a pause, which doubles with each further try. Where the reason ends at a
known time (a grace period), it waits until then. Every ledger that is ready comes before one that has waited less: the
one that was due first goes first, and among ledgers never tried chance decides, so that several workers begin at
different ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from bookkeeper.errors import check
from bookkeeper.ids import LedgerId
from bookkeeper.seams import Rng


@dataclass(slots=True)
class WaitingLedger:
    """A marked ledger that is not being repaired now."""

    due: float
    """When it may be tried again."""
    lot: float
    """Drawn by chance: the order among those that are due at the same time."""
    tries: int = 0
    """How many tries have failed."""
    reason: str = ""
    """Why the last one failed: a sentence for people."""
    since: float = 0.0
    """When it first failed."""


@dataclass(slots=True)
class RepairQueue:
    """The marked ledgers of one worker."""

    backoff_s: float
    backoff_max_s: float
    rng: Rng
    waiting: dict[LedgerId, WaitingLedger] = field(default_factory=dict)
    taken: dict[LedgerId, WaitingLedger] = field(default_factory=dict)
    """Those that are being repaired now, with what was known before."""

    def validate_state(self) -> None:
        """Raises: InvariantError."""
        check(self.waiting.keys().isdisjoint(self.taken), "A8", "a ledger waits or is repaired, not both")

    def on_listed(self, marked: Collection[LedgerId], now: float) -> None:
        """Take in the list of marked ledgers."""
        listed = set(marked)
        self.waiting = {ledger: old for ledger, old in self.waiting.items() if ledger in listed}
        for ledger in sorted(listed - self.waiting.keys() - self.taken.keys()):
            self.waiting[ledger] = WaitingLedger(now, self.rng.random())

    def take(self, now: float) -> LedgerId | None:
        """The ledger to repair now; None: none is ready."""
        ready = [(each.due, each.lot, ledger) for ledger, each in self.waiting.items() if each.due <= now]
        if not ready:
            return None
        ledger = min(ready)[2]
        self.taken[ledger] = self.waiting.pop(ledger)
        return ledger

    def next_due(self) -> float | None:
        """When the next ledger will be ready; None: none waits."""
        return min((each.due for each in self.waiting.values()), default=None)

    def on_repaired(self, ledger: LedgerId) -> None:
        """It is whole, and its mark is gone."""
        del self.taken[ledger]

    def on_failed(self, ledger: LedgerId, reason: str, now: float, until: float | None = None) -> None:
        """It is not whole yet. ``until``: when the reason ends, if that is known."""
        old = self.taken.pop(ledger)
        pause = min(self.backoff_max_s, self.backoff_s * 2 ** min(old.tries, 32))
        self.waiting[ledger] = WaitingLedger(
            due=until if until is not None and until > now else now + pause,
            lot=old.lot,
            tries=old.tries + (until is None),
            reason=reason,
            since=old.since if old.reason else now,
        )

    def on_busy(self, ledger: LedgerId, holder: str, now: float) -> None:
        """Somebody else repairs it now: look again after the shortest pause."""
        old = self.taken.pop(ledger)
        self.waiting[ledger] = WaitingLedger(
            now + self.backoff_s, old.lot, old.tries, f"{holder} repairs it now and holds its lock", old.since or now
        )

    def retry_now(self, now: float) -> None:
        """Make every waiting ledger ready: an operator has asked, or a bookie has come back."""
        for each in self.waiting.values():
            each.due = min(each.due, now)

    def stuck(self) -> Iterator[tuple[LedgerId, WaitingLedger]]:
        """The ledgers that could not be repaired so far, those that failed most often first."""
        failed = [(ledger, each) for ledger, each in self.waiting.items() if each.reason]
        yield from sorted(failed, key=lambda pair: (-pair[1].tries, pair[0]))
