"""What a writer does about its ensemble: it performs the verdicts, asks for changes, and uses bookies again.

:class:`~bookkeeper.ledger.ensemble.writer_ensemble.WriterEnsemble` says what is to be done. Here that becomes effects;
a verdict that ends the writer is handed back as the error to end it with.

Rules
    W4   Nothing is confirmed while an ensemble change is in flight: the writer sees to that.
    W5   The new fragment begins at last add confirmed + 1, which does not move meanwhile.
    W10b A bookie whose connection was lost gets everything from the first unconfirmed entry on again.
    W13  Without a spare bookie appends go on; the change is tried again later.
    W14  What a bookie missed is noted when it is used again or leaves.
"""

from __future__ import annotations

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.ensemble.member import EnsembleMember
from bookkeeper.ledger.ensemble.writer_ensemble import (
    EndWriter,
    Readmit,
    Replace,
    Verdict,
    Wait,
    WatchAgain,
    WriterEnsemble,
)
from bookkeeper.ledger.metadata import Fragment
from bookkeeper.ledger.write.alarm import Alarm
from bookkeeper.ledger.write.effects import ChangeEnsemble, Effect, WatchIncarnation
from bookkeeper.ledger.write.member_shares import MemberShares
from bookkeeper.ledger.write.progress import WriterProgress


class EnsembleChanges:
    """The changes of one writer's ``ensemble``.

    Args:
        stall_ms: a bookie that owes an answer is looked at after this time (W15).
    """

    def __init__(
        self, ensemble: WriterEnsemble, shares: MemberShares, progress: WriterProgress, alarm: Alarm, stall_ms: int
    ) -> None:
        self._ensemble = ensemble
        self._shares = shares
        self._progress = progress
        self._alarm = alarm
        self._stall_ms = stall_ms

    def perform(self, verdict: Verdict, now: float, effects: list[Effect]) -> BookKeeperError | None:
        """Perform a verdict of the ensemble. Returns the error that ends the writer, if it is that."""
        match verdict:
            case Wait():
                pass
            case WatchAgain(bookie):
                effects.append(WatchIncarnation(bookie))
            case Replace(bookies):
                effects += [WatchIncarnation(bookie) for bookie in bookies]
                self.request(now, effects)
            case Readmit(member):
                self._readmit(member, now, effects)
            case EndWriter(error):
                return error
        return None

    def request(self, now: float, effects: list[Effect]) -> None:
        """Ask for stand-ins for all failed members, one change at a time."""
        plan = self._ensemble.plan_change(now)
        if plan is not None:
            start = EntryId(self._progress.last_add_confirmed + 1)
            effects.append(ChangeEnsemble(plan.failed, plan.keep, start, plan.attempt))
        elif self._ensemble.retry_at is not None:
            self._alarm.wake_by(self._ensemble.retry_at, effects)

    def seat(self, fragment: Fragment, now: float, effects: list[Effect], *, send: bool) -> None:
        """Take the ensemble from the committed last fragment. A member that stays keeps its place and acks.

        Args:
            send: a new member gets its share of everything pending.
        """
        start = self._progress.last_add_confirmed + 1
        for left, came in self._ensemble.seat(fragment, start, now):
            self._shares.note_missing(left, 0, self._progress.last_add_confirmed, effects)
            if send:
                self._shares.send_from(came, start, effects)

    def on_committed(self, asked: tuple[BookieId, ...], fragment: Fragment, now: float, effects: list[Effect]) -> None:
        """The change that was to replace ``asked`` is committed: go on with the bookies of ``fragment``."""
        self.seat(fragment, now, effects, send=True)
        self._readmit_returned(now, effects)
        failed = self._ensemble.failed_bookies
        if set(failed) - set(asked):
            self.request(now, effects)
        elif failed:
            self._alarm.wake_by(self._ensemble.retry_later(now), effects)
        if self._progress.pending_entries:
            self._check_soon(now, effects)

    def on_not_made(self, now: float, effects: list[Effect]) -> None:
        """The change was not made: go on with the bookies that are there, and try it again later (W13)."""
        self._readmit_returned(now, effects)
        if self._ensemble.failed_bookies:
            self._alarm.wake_by(self._ensemble.retry_later(now), effects)

    def _readmit_returned(self, now: float, effects: list[Effect]) -> None:
        for member in self._ensemble.returned():
            self._readmit(member, now, effects)

    def _readmit(self, member: EnsembleMember, now: float, effects: list[Effect]) -> None:
        """Use a bookie again: send it its share from the first unconfirmed entry on."""
        self._shares.note_missing(member, 0, self._progress.last_add_confirmed, effects)
        start = self._progress.last_add_confirmed + 1
        self._ensemble.readmit(member, start, now)
        self._shares.send_from(member, start, effects)
        self._check_soon(now, effects)

    def _check_soon(self, now: float, effects: list[Effect]) -> None:
        """Look after a while whether a bookie makes no progress."""
        self._alarm.wake_by(now + self._stall_ms / 1000, effects)
