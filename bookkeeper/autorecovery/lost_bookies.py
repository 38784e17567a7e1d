"""Decides which lost bookies' ledgers are marked now, and why others are not yet. Pure.

A bookie is *lost* if it belongs to the cluster and is not registered. The auditor tells this machine what it has
listed; the machine answers with an :class:`AuditPlan`.

    A4  A bookie that has just gone may come back: its ledgers are marked after the delay, not at once.
    A9  Everything follows from what is listed now; an event that was missed changes nothing.

If more than a share of the bookies are lost together, the fault is more likely between the auditor and the bookies than
in them: nothing is marked until they come back, or an operator asks for an audit. Bookies whose ledgers are marked
already do not count again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from bookkeeper.amounts import counted
from bookkeeper.errors import check
from bookkeeper.ids import BookieId, some_of


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What to do about lost bookies."""

    mark: frozenset[BookieId] = frozenset()
    """Bookies whose ledgers are to be marked now."""
    look_again_at: float | None = None
    """When there may be more to do though nothing changes; None: never."""
    waits: str = ""
    """Why lost bookies' ledgers are not marked: a sentence for people; empty if there are none."""


@dataclass(slots=True)
class LostBookies:
    """The bookies that are lost, since when, and whose ledgers are marked."""

    mass_loss_share: float
    interval_s: float
    """Ledgers of a bookie that stays lost are marked again after so long: new fragments may name it."""
    since: dict[BookieId, float] = field(default_factory=dict)
    """The lost bookies, and when they were first seen to be."""
    marked_at: dict[BookieId, float] = field(default_factory=dict)
    """Those among them whose ledgers were marked, and when."""
    seen: set[BookieId] = field(default_factory=set)
    """Bookies that were registered at some time since this auditor began."""
    requested: bool = False
    """An operator has asked for an audit: no delay and no share counts until it is done."""

    def validate_state(self) -> None:
        """Raises: InvariantError."""
        check(self.marked_at.keys() <= self.since.keys(), "A9", "only lost bookies' ledgers are marked")

    def on_request(self) -> None:
        """An operator has asked for an audit."""
        self.requested = True

    def on_listed(
        self, known: Collection[BookieId], available: Collection[BookieId], delay_s: float, now: float
    ) -> AuditPlan:
        """Take in which bookies there are and which are registered. Returns what to do."""
        lost = set(known) - set(available)
        self.seen = {*self.seen, *available} & set(known)
        self.since = {bookie: self.since.get(bookie, now) for bookie in sorted(lost)}
        self.marked_at = {bookie: at for bookie, at in self.marked_at.items() if bookie in lost}
        if self.requested:
            return AuditPlan(frozenset(lost))
        new = [bookie for bookie in self.since if bookie not in self.marked_at]
        there = len(set(known)) - len(self.marked_at)
        due = [bookie for bookie in new if now - self.since[bookie] >= delay_s]
        again = [bookie for bookie, at in self.marked_at.items() if now - at >= self.interval_s]
        later = [self.since[bookie] + delay_s for bookie in new if bookie not in due]
        later += [at + self.interval_s for bookie, at in self.marked_at.items() if bookie not in again]
        if len(new) > 1 and len(new) > self.mass_loss_share * there:
            return AuditPlan(
                frozenset(again),
                min(later, default=None),
                f"{len(new)} of {counted(there, 'bookie')} {self._are_away(new)}. "
                "Nothing is repaired until they come back, or until `bk autorecovery trigger` says that they will not",
            )
        waiting = [bookie for bookie in new if bookie not in due]
        why = (
            f"{some_of(waiting, 5)} may come back: repair begins {delay_s:g} s after a bookie was lost"
            if waiting
            else ""
        )
        return AuditPlan(frozenset([*due, *again]), min(later, default=None), why)

    def _are_away(self, new: Collection[BookieId]) -> str:
        """What several bookies that are away together look like."""
        who = some_of(new, 5)
        if self.seen.isdisjoint(new):
            return f"have not been there since this auditor began ({who}): they are starting, or cannot be reached"
        return f"are lost together ({who}): that looks like a cut network"

    def on_marked(self, bookies: Collection[BookieId], now: float) -> None:
        """All ledgers that name ``bookies`` are marked."""
        self.marked_at |= {bookie: now for bookie in bookies if bookie in self.since}
        self.requested = False
