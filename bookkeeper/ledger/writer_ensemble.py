"""The ensemble of a writer: who sits in it, who failed or lags, who stands in.

``EnsembleKeeper`` is the part of :class:`~bookkeeper.ledger.writer.LedgerWriter` that decides about bookies. A member
of the ensemble is *live* or *failed*. A failed one is sent nothing and its replies count for nothing; what it
acknowledged before still does, as long as it stays in the ensemble. It leaves when a stand-in is found, or becomes
live again after its life was checked (W10b), from the first unconfirmed entry on; what it missed is noted (W14).

The rules are listed in :mod:`bookkeeper.ledger.writer`; here are W4, W5, W9, W10b, W13, W14, W15, and of W11 that
with deferred sync the ensemble never changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from bookkeeper.errors import (
    BookieFailedError,
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
    RequestTimedOutError,
    UnauthorizedError,
    check,
)
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.acks import Acks
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from bookkeeper.ledger.slow_bookies import SlowBookies
from bookkeeper.ledger.writer_effects import (
    ChangeEnsemble,
    ChangeFailure,
    Effect,
    NoteMissing,
    SendAdds,
    WatchIncarnation,
    WriterConfig,
)
from bookkeeper.ledger.writer_parts import EnsembleMember, WriterState

_CHANGES_AT_ONCE: Final = 3
"""Ensemble changes that may follow each other without an entry confirmed in between, before there is a pause:
stand-ins that fail at once would else be tried in turn, as fast as the store can write."""


class EnsembleKeeper(ABC):
    """See the module. What it cannot decide is left to the writer."""

    def __init__(self, metadata: LedgerMetadata, config: WriterConfig) -> None:
        assert metadata.state is LedgerState.OPEN and len(metadata.fragments) == 1, metadata
        self.spec = metadata.spec
        self.config = config
        self.state = WriterState.OPEN
        self.metadata = metadata
        """As last committed or seen."""
        self.last_add_confirmed: EntryId = NO_ENTRY
        self.next_entry = EntryId(0)
        """The id of the next append."""
        self.acknowledged_length = 0
        """Payload bytes of entries 0 .. last_acknowledged."""
        self.last_acknowledged: EntryId = NO_ENTRY
        """The highest id that its caller was told of: the last add confirmed, or with deferred sync beyond it (W11)."""
        self._deferred = config.deferred_sync
        self._striped = self.spec.is_striped
        self._members = self._seat_all(metadata.last_fragment.ensemble, 0, 0.0)
        self._by_bookie = {member.bookie: member for member in self._members}
        self._change: ChangeEnsemble | None = None
        self._attempts = 0
        self._changes_here = 0
        """Committed changes since the last confirm."""
        self._no_change_before = 0.0
        self._retry_at: float | None = None
        self._wake_at: float | None = None
        self._slow_bookies = SlowBookies(
            config.add_timeout_ms if self._deferred else config.stall_ms, config.trail_bytes_max
        )
        self._held_up = False
        """Callers wait for a bookie that trails (W11)."""
        self._closes_when_forced = False
        """Everything was done for a close but to force what is acknowledged (W11)."""
        self._last_failure: BookKeeperError | None = None

    # -- what the writer decides ------------------------------------------------------------------------

    @abstractmethod
    def _fail(self, error: BookKeeperError) -> list[Effect]:
        """End for good (W6)."""

    @abstractmethod
    def _fail_force(self, error: BookKeeperError, now: float) -> list[Effect]:
        """The force that a close waits for cannot come about."""

    @abstractmethod
    def _go_on(self, now: float) -> list[Effect]:
        """Confirm and force what can be, after the ensemble changed."""

    @abstractmethod
    def _end_of_ledger(self, metadata: LedgerMetadata) -> list[Effect]:
        """What is stored says that this writer is not the writer any more."""

    @abstractmethod
    def _close_metadata(self) -> list[Effect]:
        """Close where everything is decided."""

    # -- the members ------------------------------------------------------------------------------------

    def _seat_all(self, ensemble: Sequence[BookieId], start: int, now: float) -> list[EnsembleMember]:
        return [EnsembleMember(b, p, Acks(self.spec, p, start), now) for p, b in enumerate(ensemble)]

    @property
    def failed_bookies(self) -> tuple[BookieId, ...]:
        """Members of the ensemble that are sent nothing now."""
        return tuple(member.bookie for member in self._members if not member.live)

    def _why_failed(self) -> str:
        """The same with the reason of each, for people."""
        failed = [member for member in self._members if not member.live]
        return ", ".join(f"{member.bookie} ({member.failure or 'no reason is known'})" for member in failed) or "none"

    @property
    def is_changing(self) -> bool:
        """Is an ensemble change in flight (confirms are held)?"""
        return self._change is not None

    def _lac_readers(self) -> tuple[BookieId, ...]:
        return tuple(member.bookie for member in self._members if member.live)

    def _send(self, member: EnsembleMember, first: int, effects: list[Effect]) -> None:
        """Send a seat what it holds of everything from ``first`` on."""
        count = self.next_entry - first
        if count > 0 and (not self._striped or self.spec.stripe_size(member.position, first, count)):
            effects.append(SendAdds(member.bookie, EntryId(first), count, member.position))

    def send_again(self, bookie: BookieId, first: int, count: int, kept_from: int) -> list[Effect]:
        """``bookie`` had no room for these entries a while ago. It has not failed by that: W15 decides.

        Args:
            kept_from: packets below this entry were released; those the bookie will never have (W14).
        """
        member = self._by_bookie.get(bookie)
        if (self.state is not WriterState.OPEN and not self._closes_when_forced) or member is None or not member.live:
            return []
        known = self.next_entry if self.state is WriterState.OPEN else self.last_acknowledged + 1  # R13
        end, effects = min(first + count, known), list[Effect]()
        if first < kept_from:
            gone = min(end, kept_from)
            check(gone <= self.last_add_confirmed + 1, "W8", f"entry {gone - 1} is pending and its packet is gone")
            for low, last in member.acks.missing(first, gone - 1):
                if self.spec.stripe_size(member.position, low, last - low + 1):
                    effects.append(NoteMissing(bookie, EntryId(low), EntryId(last)))
            member.acks.add(first, gone)  # below the line acks decide nothing any more; the mark must not stand here
            first = gone
        if first < end and (not self._striped or self.spec.stripe_size(member.position, first, end - first)):
            effects.append(SendAdds(bookie, EntryId(first), end - first, member.position))
        return effects

    def _note_missing(self, member: EnsembleMember, effects: list[Effect]) -> None:
        """Record the confirmed entries that a seat never acknowledged (W14)."""
        for first, last in member.acks.missing(0, self.last_add_confirmed):
            if self.spec.stripe_size(member.position, first, last - first + 1):
                effects.append(NoteMissing(member.bookie, EntryId(first), EntryId(last)))

    def _wake_by(self, time: float, effects: list[Effect]) -> None:
        if self._wake_at is None or time < self._wake_at:
            self._wake_at = time
            effects.append(WakeAt(time))

    # -- those who fail and return -------------------------------------------------------------------

    def on_bookie_failed(self, bookie: BookieId, error: BookKeeperError, now: float) -> list[Effect]:
        """An add failed on ``bookie``, or the connection to it was lost (also when nothing was in flight: W10b).

        A fenced or unauthorised reply ends the handle; anything else is this bookie's failure.
        """
        member = self._by_bookie.get(bookie)
        if member is not None and self._closes_when_forced:
            if isinstance(error, LedgerFencedError):
                error = LedgerFencedError("another client recovers this ledger")
            elif not isinstance(error, UnauthorizedError):
                error = _lost(bookie, error)
            return self._fail_force(error, now)
        if self.state is not WriterState.OPEN or member is None:
            return []
        if isinstance(error, LedgerFencedError):
            return self._fail(LedgerFencedError("another client recovers this ledger"))
        if isinstance(error, UnauthorizedError):
            return self._fail(error)
        if self._deferred:
            return self._fail(_lost(bookie, error))
        effects: list[Effect] = []
        if not member.live:
            self._last_failure = member.failure = error
            if member.returned:  # it came back and was lost again while a change is in flight
                member.returned = False
                effects.append(WatchIncarnation(bookie))
            return effects
        self._drop(member, error, effects)
        self._change_ensemble(now, effects)
        return effects

    def _drop(self, member: EnsembleMember, error: BookKeeperError, effects: list[Effect]) -> None:
        self._last_failure = member.failure = error
        member.live = False
        member.returned = False
        member.suspected_at = None
        effects.append(WatchIncarnation(member.bookie))

    def on_bookie_returned(self, bookie: BookieId, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """``bookie`` answers again; ``metadata`` was read after that, after a sync (W10b)."""
        member = self._by_bookie.get(bookie)
        if self.state is not WriterState.OPEN or member is None or member.live:
            return []
        if metadata.state is not LedgerState.OPEN:
            return self._end_of_ledger(metadata)
        if bookie not in metadata.last_fragment.ensemble:
            return [] if self._change else [WatchIncarnation(bookie)]
        effects: list[Effect] = []
        if self._change is not None:
            member.returned = True
        else:
            self._revive(member, now, effects)
        return effects + self._go_on(now)

    def _revive(self, member: EnsembleMember, now: float, effects: list[Effect]) -> None:
        """Count on a bookie again, from the first unconfirmed entry on: that and all later ones are sent anew."""
        self._note_missing(member, effects)
        start = self.last_add_confirmed + 1
        member.acks = Acks(self.spec, member.position, start)
        member.live, member.returned, member.progress_at = True, False, now
        self._send(member, start, effects)
        self._wake_by(now + self.config.stall_ms / 1000, effects)

    # -- those who lag (W15) -------------------------------------------------------------------------

    def _fail_those_who_hang(self, now: float, effects: list[Effect]) -> bool:
        """A live bookie with something unanswered that stood still while another moved on (W15).

        True: that ended the handle (W11).
        """
        hanging = self._slow_bookies.hanging(self._members, self.next_entry, now, held_up=self._held_up)
        for member in hanging:
            stall = RequestTimedOutError(f"{member.bookie} stood still for {self._slow_bookies.stall_ms} ms")
            if self._deferred:
                effects += self._fail(_lost(member.bookie, stall))
                return True
            self._drop(member, stall, effects)
        if hanging:
            self._change_ensemble(now, effects)
        return False

    def _fail_those_who_trail(self, now: float, effects: list[Effect]) -> None:
        """A live bookie behind which ``trail_bytes_max`` have piled up (W15); with deferred sync callers wait (W11)."""
        self._slow_bookies.step(self.acknowledged_length, self.last_acknowledged)
        trailing = self._slow_bookies.trailing(self._members)
        if self._deferred:
            self._held_up = bool(trailing)
            return
        for member in trailing:
            trails = RequestTimedOutError(f"{member.bookie} trails by {self.config.trail_bytes_max} bytes")
            self._drop(member, trails, effects)
        if trailing:
            self._change_ensemble(now, effects)

    # -- changing the ensemble -----------------------------------------------------------------------

    def _change_ensemble(self, now: float, effects: list[Effect]) -> None:
        """Ask for stand-ins for all who failed, one change at a time; hold the confirms (W4)."""
        failed = self.failed_bookies
        self._retry_at = None
        if self._change is not None or not failed:
            return
        if now < self._no_change_before:
            self._retry_at = self._no_change_before
            self._wake_by(self._retry_at, effects)
            return
        keep = tuple(member.bookie for member in self._members if member.live)
        self._attempts += 1
        self._change = ChangeEnsemble(failed, keep, EntryId(self.last_add_confirmed + 1), self._attempts)
        effects.append(self._change)

    def on_ensemble_changed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The change that was asked for is committed; ``metadata`` is what is stored."""
        change, self._change = self._change, None
        if self.state is WriterState.CLOSING:
            seated = self._seat_committed(metadata, now) if metadata.state is LedgerState.OPEN else []
            return seated + self._close_metadata()
        if self.state is not WriterState.OPEN or change is None:
            return []
        if metadata.state is not LedgerState.OPEN:
            return self._end_of_ledger(metadata)
        effects = self._seat_committed(metadata, now)
        self._changes_here += 1
        if self._changes_here >= _CHANGES_AT_ONCE:
            self._no_change_before = now + self.config.change_retry_ms / 1000
        for member in self._members:
            if member.returned:
                self._revive(member, now, effects)
        if set(self.failed_bookies) - set(change.failed):
            self._change_ensemble(now, effects)
        elif self.failed_bookies:
            self._retry_later(now, effects)
        if self.next_entry > self.last_acknowledged + 1:
            self._wake_by(now + self.config.stall_ms / 1000, effects)
        return effects + self._go_on(now)

    def _seat_committed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """Take the ensemble from committed metadata: who stays keeps seat and acks, who came is sent all pending."""
        start = self.last_add_confirmed + 1
        last = metadata.last_fragment
        stays = last.ensemble == tuple(member.bookie for member in self._members)
        fits = last.first_entry == start or (stays and last.first_entry < start)
        check(fits, "W5", f"fragment {last} is committed, the first unconfirmed entry is {start}")
        self.metadata = metadata
        effects: list[Effect] = []
        members = self._seat_all(last.ensemble, start, now)
        for position, (old, new) in enumerate(zip(self._members, members, strict=True)):
            if old.bookie == new.bookie:
                members[position] = old
            else:
                self._note_missing(old, effects)
                if self.state is WriterState.OPEN:
                    self._send(new, start, effects)
        self._members = members
        self._by_bookie = {member.bookie: member for member in members}
        return effects

    def on_change_failed(self, reason: ChangeFailure, now: float) -> list[Effect]:
        """The change that was asked for was not made, or the store says that the ledger is at its end."""
        change, self._change = self._change, None
        if self.state is WriterState.CLOSING and change is not None:
            return self._close_metadata()
        if self.state is not WriterState.OPEN:
            return []
        match reason:
            case ChangeFailure.CLOSED:
                return self._fail(LedgerClosedError("the ledger was closed by a recovery"))
            case ChangeFailure.IN_RECOVERY:
                return self._fail(LedgerFencedError("another client recovers this ledger"))
            case ChangeFailure.DELETED:
                return self._fail(NoSuchLedgerError("the ledger was deleted"))
            case ChangeFailure.NO_SPARE | ChangeFailure.STORE_AWAY:
                effects: list[Effect] = []
                for member in self._members:
                    if member.returned:
                        self._revive(member, now, effects)
                if self.failed_bookies:
                    self._retry_later(now, effects)
                return effects + self._go_on(now)

    def _retry_later(self, now: float, effects: list[Effect]) -> None:
        self._retry_at = now + self.config.change_retry_ms / 1000
        self._wake_by(self._retry_at, effects)

    def on_spares_changed(self, now: float) -> list[Effect]:
        """A bookie appeared that may stand in."""
        effects: list[Effect] = []
        if self.state is WriterState.OPEN:
            self._no_change_before = now
            self._change_ensemble(now, effects)
        return effects


def _lost(bookie: BookieId, error: BookKeeperError) -> BookieFailedError:
    """W11: what a bookie acknowledged without a sync may be lost with it."""
    failure = BookieFailedError(
        f"{bookie} failed, and a ledger with deferred_sync has no ensemble change: nothing more can be appended or "
        f"forced. A recovery (open_ledger) keeps what its other bookies have; close(force=False) ends the ledger at "
        f"the last add confirmed. The failure: {error}"
    )
    failure.__cause__ = error
    return failure
