"""The writing half of a ledger, as a machine that touches nothing.

``LedgerWriter`` is told what happened and answers with what to do about it, in runs of consecutive entries. Payloads
stay with the shell: the machine knows their ids and sizes.

    open     -- on_bookie_failed -->  open, a change in flight: adds are sent, confirms are held (W4)
             -- on_ensemble_changed | on_change_failed(no spare, store away) -->  open
    open     -- on_fenced, deadline, on_change_failed(closed, ...) -->  failed, for good (W6)
    open     -- close -->  closing  -- on_closed -->  closed

A member of the ensemble is *live* or *failed*. A failed one is sent nothing and its replies count for nothing; what
it acknowledged before still does, as long as it stays in the ensemble. It leaves when a stand-in is found, or becomes
live again after its life was checked (W10b), from the first unconfirmed entry on; what it missed is noted (D12).

Rules
    W1   Confirmed means: on Qa bookies of the write set, taken from metadata that is committed.
    W2   Confirms leave in id order, each once.
    W3   ``last_add_confirmed`` is the highest confirmed id and never falls; packets carry at most that.
    W4   Nothing is confirmed while a change of the ensemble is in flight; then acks are counted without the replaced.
    W5   The new fragment begins at last add confirmed + 1, which stands still meanwhile.
    W6   Failed is for good: all pending adds fail in order, late replies change nothing.
    W7   A failed add is unknown, not absent.
    W8   Packets are built once (``Encode``) and re-sent as they are, until ``Release``.
    W9   One fenced reply ends the handle, and never changes the ensemble.
    W10b A bookie whose connection was lost counts again only after the ledger was seen OPEN with it in the last
         fragment.
    W11  With deferred sync an ack moves ``last_acknowledged`` only; ``last_add_confirmed`` follows with ``force``
         (:mod:`bookkeeper.ledger.forcing`). There is no ensemble change: a bookie that fails ends the handle, for what
         it acknowledged may be lost. One that lags holds up the callers instead of failing.
    W12  ``must_wait`` bounds what is pending.
    R13  Closing fails what is pending first, and closes only from OPEN; with deferred sync it forces in between.
    D11  Without a spare appends go on; only the deadline of an append ends the handle.
    D13  A bookie that stands still while others progress, or trails too far, counts as failed.
    D14  When the last add confirmed has moved and nothing is pending, it is published by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from bookkeeper.errors import (
    AddTimeoutError,
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
from bookkeeper.ledger.forcing import Forcing
from bookkeeper.ledger.laggards import Laggards
from bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from bookkeeper.ledger.writer_effects import (
    ChangeEnsemble,
    ChangeFailure,
    CloseFailed,
    CloseMetadata,
    Confirm,
    Effect,
    Encode,
    FailAdds,
    Forced,
    ForceFailed,
    ForceLedger,
    MoreRoom,
    NoteMissing,
    PublishLac,
    Release,
    SendAdds,
    WatchLife,
    WriterConfig,
)
from bookkeeper.ledger.writer_parts import Run, Seat

__all__ = [
    "ChangeEnsemble",
    "ChangeFailure",
    "CloseFailed",
    "CloseMetadata",
    "Confirm",
    "Effect",
    "Encode",
    "FailAdds",
    "ForceFailed",
    "ForceLedger",
    "Forced",
    "LedgerWriter",
    "MoreRoom",
    "NoteMissing",
    "PublishLac",
    "Release",
    "SendAdds",
    "WakeAt",
    "WatchLife",
    "WriterConfig",
    "WriterState",
]

_CHANGES_AT_ONCE: Final = 3
"""Ensemble changes that may follow each other without an entry confirmed in between, before there is a pause:
stand-ins that fail at once would else be tried in turn, as fast as the store can write."""


class WriterState(Enum):
    """Where a writer stands; see the drawing."""

    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"


class LedgerWriter:
    """Appends to one ledger. ``metadata`` is as it was committed when the ledger was created: OPEN and empty."""

    def __init__(self, metadata: LedgerMetadata, config: WriterConfig | None = None) -> None:
        assert metadata.state is LedgerState.OPEN and len(metadata.fragments) == 1, metadata
        self.spec = metadata.spec
        self._striped = self.spec.is_striped
        self.config = config or WriterConfig()
        self.state = WriterState.OPEN
        self.metadata = metadata
        """As last committed or seen."""
        self.last_add_confirmed: EntryId = NO_ENTRY
        self.last_acknowledged: EntryId = NO_ENTRY
        """The highest id that its caller was told of: the last add confirmed, or with deferred sync beyond it (W11)."""
        self.next_entry = EntryId(0)
        """The id of the next append."""
        self.pending_bytes = 0
        """Payload bytes appended and not acknowledged (W12)."""
        self.acknowledged_length = 0
        """Payload bytes of entries 0 .. last_acknowledged."""
        self.error: BookKeeperError | None = None
        """Why nothing can be appended any more; None while something can."""
        self._pending: deque[Run] = deque()
        self._seats = self._seat_all(metadata.last_fragment.ensemble, 0, 0.0)
        self._by_bookie = {seat.bookie: seat for seat in self._seats}
        self._change: ChangeEnsemble | None = None
        self._attempts = 0
        self._changes_here = 0
        """Committed changes since the last confirm."""
        self._no_change_before = 0.0
        self._retry_at: float | None = None
        self._wake_at: float | None = None
        self._lac_told: EntryId = NO_ENTRY
        self._deferred = self.config.deferred_sync
        self._forcing = Forcing(self.config.force_timeout_ms)
        stall_ms = self.config.add_timeout_ms if self._deferred else self.config.stall_ms
        self._laggards = Laggards(stall_ms, self.config.trail_bytes_max)
        self._held_up = False
        """Callers wait for a bookie that trails (W11)."""
        self._closes_when_forced = False
        self._last_failure: BookKeeperError | None = None
        self._may_close = True

    def __repr__(self) -> str:
        seats = " ".join(f"{s.bookie}{'' if s.live else '!'}{s.acks}" for s in self._seats)
        held = ", changing" if self._change else ""
        return f"<{self.state.value}{held}, lac={self.last_add_confirmed}, next={self.next_entry}, {seats}>"

    def _seat_all(self, ensemble: Sequence[BookieId], start: int, now: float) -> list[Seat]:
        return [Seat(b, p, Acks(self.spec, p, start), now) for p, b in enumerate(ensemble)]

    @property
    def confirmed_length(self) -> int:
        """Payload bytes of entries 0 .. last_add_confirmed."""
        return self._forcing.forced_length if self._deferred else self.acknowledged_length

    # -- adding -----------------------------------------------------------------------------------------

    @property
    def pending_entries(self) -> int:
        """Entries appended and not acknowledged (W12)."""
        return self.next_entry - self.last_acknowledged - 1

    @property
    def must_wait(self) -> bool:
        """Must callers wait for confirms before they append more (W12)? ``add`` itself never refuses."""
        return (
            self.pending_bytes >= self.config.pending_bytes_max
            or self.pending_entries >= self.config.pending_entries_max
            or self._held_up
        )

    @property
    def failed_bookies(self) -> tuple[BookieId, ...]:
        """Members of the ensemble that are sent nothing now."""
        return tuple(seat.bookie for seat in self._seats if not seat.live)

    @property
    def may_close(self) -> bool:
        """May ``close`` be called, again or after what ended the handle?"""
        return self._may_close

    @property
    def is_changing(self) -> bool:
        """Is an ensemble change in flight (confirms are held)?"""
        return self._change is not None

    def add(self, sizes: Sequence[int], now: float) -> tuple[EntryId, list[Effect]]:
        """Append a run of payloads of these sizes in bytes; ``sizes`` must not be changed afterwards.

        Returns the first id. Raises what ended the handle (``error``).
        """
        if self.state is not WriterState.OPEN:
            raise self.error or LedgerClosedError("the ledger is closed")
        first, count = self.next_entry, len(sizes)
        if not count:
            return first, []
        run = Run(first, sizes, now + self.config.add_timeout_ms / 1000)
        lac = self.last_add_confirmed
        effects: list[Effect] = [Encode(first, count, lac, self.acknowledged_length + self.pending_bytes)]
        self._pending.append(run)
        self.pending_bytes += run.bytes
        self.next_entry = EntryId(first + count)
        self._lac_told = max(self._lac_told, lac)
        for seat in self._seats:
            if seat.live:
                if seat.acks.mark >= first:
                    seat.progress_at = now
                self._send(seat, first, effects)
        self._wake_by(min(run.deadline, now + self._laggards.stall_ms / 1000), effects)
        return first, effects

    def _send(self, seat: Seat, first: int, effects: list[Effect]) -> None:
        """Send a seat what it holds of everything from ``first`` on."""
        count = self.next_entry - first
        if count > 0 and (not self._striped or self.spec.stripe_size(seat.position, first, count)):
            effects.append(SendAdds(seat.bookie, EntryId(first), count, seat.position))

    def on_acks(self, bookie: BookieId, first: int, count: int, now: float) -> list[Effect]:
        """``bookie`` has stored every entry of ``first .. first + count - 1`` that it holds."""
        seat = self._by_bookie.get(bookie)
        if (self.state is not WriterState.OPEN and not self._forcing.active) or seat is None or not seat.live:
            return []  # too late (W6), replaced (W4), or its life is in doubt (W10b)
        if not seat.acks.add(first, min(first + count, self.next_entry)):
            return []
        seat.progress_at = now
        seat.suspected_at = None
        effects = self._confirm(now)
        if self._forcing.active or self._held_up:
            effects += self._go_on_after_ack(now)
        return effects

    def on_ack_ids(self, bookie: BookieId, ids: Iterable[int], now: float) -> list[Effect]:
        """``bookie`` has stored exactly these entries (for E > Qw, where its ids have holes)."""
        effects: list[Effect] = []
        for entry_id in ids:
            effects += self.on_acks(bookie, entry_id, 1, now)
        return effects

    def send_again(self, bookie: BookieId, first: int, count: int, kept_from: int) -> list[Effect]:
        """``bookie`` had no room for these entries a while ago. It has not failed by that: D13 decides.

        Args:
            kept_from: packets below this entry were released; those the bookie will never have (D12).
        """
        seat = self._by_bookie.get(bookie)
        if self.state is not WriterState.OPEN or seat is None or not seat.live:
            return []
        end, effects = min(first + count, self.next_entry), list[Effect]()
        if first < kept_from:
            gone = min(end, kept_from)
            check(gone <= self.last_add_confirmed + 1, "W8", f"entry {gone - 1} is pending and its packet is gone")
            for low, last in seat.acks.missing(first, gone - 1):
                if self.spec.stripe_size(seat.position, low, last - low + 1):
                    effects.append(NoteMissing(bookie, EntryId(low), EntryId(last)))
            seat.acks.add(first, gone)  # below the line acks decide nothing any more; the mark must not stand here
            first = gone
        if first < end and (not self._striped or self.spec.stripe_size(seat.position, first, end - first)):
            effects.append(SendAdds(bookie, EntryId(first), end - first, seat.position))
        return effects

    def _confirm(self, now: float) -> list[Effect]:
        """Release the acknowledged prefix (W1, W2), unless the line is held (W4)."""
        if not self._pending or self._change is not None or self.state is not WriterState.OPEN:
            return []
        first = end = self.last_acknowledged + 1
        while end < self.next_entry:
            reached = self.spec.acknowledged_below(end, [seat.acks.end_from(end) for seat in self._seats])
            if reached <= end:
                break
            end = min(reached, self.next_entry)
        if end == first:
            return []
        self._drop_pending(end)
        self._changes_here = 0
        self.last_acknowledged = EntryId(end - 1)
        kept = end
        if self._deferred:  # what one bookie has refused it must still get, or nothing could ever be forced (W11)
            kept = min(end, *(seat.acks.mark for seat in self._seats))
        else:
            self.last_add_confirmed = self.last_acknowledged
        effects: list[Effect] = [Confirm(EntryId(first), end - first), Release(EntryId(kept - 1))]
        if not self._pending:
            effects.append(PublishLac(self.last_add_confirmed, self._lac_readers()))
        if self.acknowledged_length >= self._laggards.next_step:
            self._fail_those_who_trail(now, effects)
        return effects

    def _drop_pending(self, end: int) -> None:
        """Count the pending entries below ``end`` as acknowledged bytes."""
        dropped = 0
        while self._pending and self._pending[0].first < end:
            run = self._pending[0]
            if run.end <= end:
                dropped += run.bytes
                self._pending.popleft()
            else:
                dropped += run.cut(end)
        self.pending_bytes -= dropped
        self.acknowledged_length += dropped

    # -- making durable what is only written (W11) ------------------------------------------------------

    def force(self, now: float) -> tuple[int, list[Effect]]:
        """Make durable, on every bookie, what is acknowledged now.

        Returns the number of the force that does it; ``Forced`` or ``ForceFailed`` will tell. Raises what ended the
        handle (``error``).
        """
        if self.state is not WriterState.OPEN:
            raise self.error or LedgerClosedError("the ledger is closed")
        number = self._forcing.ask(self.last_acknowledged, self.acknowledged_length, now)
        return number, self._go_on_forcing(now)

    def on_forced(self, bookie: BookieId, number: int, now: float) -> list[Effect]:
        """``bookie`` has made durable what it acknowledged before it was asked (``ForceLedger``)."""
        self._forcing.on_forced(bookie, number)
        return self._go_on_forcing(now)

    def on_force_failed(self, bookie: BookieId, number: int, error: BookKeeperError, now: float) -> list[Effect]:
        """``bookie`` could not. The handle goes on, unless the connection was lost, which is reported by itself."""
        effects = self._forcing.on_failed(number, error, self.last_acknowledged, self.acknowledged_length)
        return self._after_force_failed(effects, now)

    def _go_on_forcing(self, now: float) -> list[Effect]:
        forcing = self._forcing
        effects = forcing.proceed(self._seats, self.last_acknowledged, self.acknowledged_length)
        if self._deferred and forcing.forced > self.last_add_confirmed:
            self.last_add_confirmed = forcing.forced
            if self.state is WriterState.OPEN and not self._pending:
                effects.append(PublishLac(self.last_add_confirmed, self._lac_readers()))
        if self._closes_when_forced and self.last_add_confirmed == self.last_acknowledged:
            self._closes_when_forced = False
            effects += self._close_metadata()
        if forcing.deadline is not None:
            self._wake_by(forcing.deadline, effects)
        return effects

    def _after_force_failed(self, effects: list[Effect], now: float) -> list[Effect]:
        """A force has failed; if it was all that a close waited for, so has the close."""
        if self._closes_when_forced and not self._forcing.active:
            failed = [effect.error for effect in effects if isinstance(effect, ForceFailed)]
            return effects + self._fail_close(failed[-1])
        return effects + self._go_on_forcing(now)

    def _go_on_after_ack(self, now: float) -> list[Effect]:
        effects = self._go_on_forcing(now)
        if self._held_up and not self._laggards.trailing(self._seats):
            self._held_up = False
            effects.append(MoreRoom())
        return effects

    # -- last add confirmed without an add (D14) --------------------------------------------------------

    def _lac_readers(self) -> tuple[BookieId, ...]:
        return tuple(seat.bookie for seat in self._seats if seat.live)

    def lac_to_publish(self) -> EntryId | None:
        """What an explicit last add confirmed should carry now; None if the next add will carry it anyway."""
        news = self.last_add_confirmed > self._lac_told
        return self.last_add_confirmed if news and not self._pending and self.state is WriterState.OPEN else None

    def on_lac_published(self, lac: EntryId) -> None:
        """It was sent."""
        self._lac_told = max(self._lac_told, lac)

    # -- bookies that fail ------------------------------------------------------------------------------

    def on_bookie_failed(self, bookie: BookieId, error: BookKeeperError, now: float) -> list[Effect]:
        """An add failed on ``bookie``, or the connection to it was lost (also when nothing was in flight: W10b).

        A fenced or unauthorised reply ends the handle; anything else is this bookie's failure.
        """
        seat = self._by_bookie.get(bookie)
        if seat is not None and self._closes_when_forced:
            return self._after_force_failed(self._forcing.fail(_lost(bookie, error)), now)
        if self.state is not WriterState.OPEN or seat is None:
            return []
        if isinstance(error, LedgerFencedError):
            return self.on_fenced(now)
        if isinstance(error, UnauthorizedError):
            return self._fail(error)
        if self._deferred:
            return self._fail(_lost(bookie, error))
        self._last_failure = error
        effects: list[Effect] = []
        if not seat.live:
            if seat.returned:  # it came back and was lost again while a change is in flight
                seat.returned = False
                effects.append(WatchLife(bookie))
            return effects
        self._drop(seat, effects)
        self._change_ensemble(now, effects)
        return effects

    def _drop(self, seat: Seat, effects: list[Effect]) -> None:
        seat.live = False
        seat.returned = False
        seat.suspected_at = None
        effects.append(WatchLife(seat.bookie))

    def on_fenced(self, now: float) -> list[Effect]:
        """Some bookie of the ensemble said that the ledger is fenced (W9)."""
        return self._fail(LedgerFencedError("another client recovers this ledger"))

    def on_bookie_returned(self, bookie: BookieId, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """``bookie`` answers again; ``metadata`` was read after that, after a sync (W10b)."""
        seat = self._by_bookie.get(bookie)
        if self.state is not WriterState.OPEN or seat is None or seat.live:
            return []
        if metadata.state is not LedgerState.OPEN:
            return self._end_of_ledger(metadata)
        if bookie not in metadata.last_fragment.ensemble:
            return [] if self._change else [WatchLife(bookie)]
        effects: list[Effect] = []
        if self._change is not None:
            seat.returned = True
        else:
            self._revive(seat, now, effects)
        return effects + self._go_on_forcing(now)

    def _revive(self, seat: Seat, now: float, effects: list[Effect]) -> None:
        """Count on a bookie again, from the first unconfirmed entry on: that and all later ones are sent anew."""
        self._note_missing(seat, effects)
        start = self.last_add_confirmed + 1
        seat.acks = Acks(self.spec, seat.position, start)
        seat.live, seat.returned, seat.progress_at = True, False, now
        self._send(seat, start, effects)
        self._wake_by(now + self.config.stall_ms / 1000, effects)

    def _note_missing(self, seat: Seat, effects: list[Effect]) -> None:
        """Record the confirmed entries that a seat never acknowledged (D12)."""
        for first, last in seat.acks.missing(0, self.last_add_confirmed):
            if self.spec.stripe_size(seat.position, first, last - first + 1):
                effects.append(NoteMissing(seat.bookie, EntryId(first), EntryId(last)))

    # -- changing the ensemble --------------------------------------------------------------------------

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
        keep = tuple(seat.bookie for seat in self._seats if seat.live)
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
        for seat in self._seats:
            if seat.returned:
                self._revive(seat, now, effects)
        if set(self.failed_bookies) - set(change.failed):
            self._change_ensemble(now, effects)
        elif self.failed_bookies:
            self._retry_later(now, effects)
        if self._pending:
            self._wake_by(now + self.config.stall_ms / 1000, effects)
        return effects + self._confirm(now) + self._go_on_forcing(now)

    def _seat_committed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """Take the ensemble from committed metadata: who stays keeps seat and acks, who came is sent all pending."""
        start = self.last_add_confirmed + 1
        last = metadata.last_fragment
        stays = last.ensemble == tuple(seat.bookie for seat in self._seats)
        fits = last.first_entry == start or (stays and last.first_entry < start)
        check(fits, "W5", f"fragment {last} is committed, the first unconfirmed entry is {start}")
        self.metadata = metadata
        effects: list[Effect] = []
        seats = self._seat_all(last.ensemble, start, now)
        for position, (old, new) in enumerate(zip(self._seats, seats, strict=True)):
            if old.bookie == new.bookie:
                seats[position] = old
            else:
                self._note_missing(old, effects)
                if self.state is WriterState.OPEN:
                    self._send(new, start, effects)
        self._seats = seats
        self._by_bookie = {seat.bookie: seat for seat in seats}
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
                for seat in self._seats:
                    if seat.returned:
                        self._revive(seat, now, effects)
                if self.failed_bookies:
                    self._retry_later(now, effects)
                return effects + self._confirm(now) + self._go_on_forcing(now)

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

    # -- the end ----------------------------------------------------------------------------------------

    def _end_of_ledger(self, metadata: LedgerMetadata) -> list[Effect]:
        """What is stored says that this writer is not the writer any more."""
        self.metadata = metadata
        if metadata.is_closed:
            return self._fail(LedgerClosedError(f"the ledger was closed at {metadata.last_entry} by a recovery"))
        return self._fail(LedgerFencedError("another client recovers this ledger"))

    def _fail(self, error: BookKeeperError) -> list[Effect]:
        """End for good (W6); what is pending becomes unknown (W7), in order."""
        if self.state is not WriterState.OPEN:
            return []  # a close that is under way will find out by itself
        self.state = WriterState.FAILED
        self.error = error
        self._may_close = isinstance(error, AddTimeoutError) or (
            self._deferred and isinstance(error, BookieFailedError)
        )
        return self._fail_pending(error) + self._forcing.fail(error)

    def on_broken(self, error: BookKeeperError) -> list[Effect]:
        """The shell cannot go on: nothing is taken or confirmed any more (W6); a recovery decides the end."""
        return self._fail(error)

    def _fail_pending(self, error: BookKeeperError) -> list[Effect]:
        first, count = EntryId(self.last_acknowledged + 1), self.pending_entries
        self._pending.clear()
        self.pending_bytes = 0
        if not count:
            return []
        return [FailAdds(first, count, error), Release(EntryId(first + count - 1))]

    def close(self, now: float, *, force: bool = True) -> list[Effect]:
        """Fail what is pending, then close at the last add confirmed (R13). Idempotent: later calls return [].

        A handle that failed for want of bookies may be closed, too.

        Args:
            force: with deferred sync: force in between, so that everything acknowledged is part of the closed ledger.

        Raises what ended the handle, if the ledger is not ours to close any more, or if that cannot be forced any more.
        """
        if self.state in (WriterState.CLOSING, WriterState.CLOSED):
            return []
        unforced = self.last_acknowledged > self.last_add_confirmed
        if self.error is not None and (not self._may_close or (force and unforced)):
            raise self.error
        self.error = LedgerClosedError("the ledger was closed by its writer")
        effects = self._fail_pending(self.error) if self.state is WriterState.OPEN else []
        self.state = WriterState.CLOSING
        if force and unforced:
            self._closes_when_forced = True
            self._forcing.ask(self.last_acknowledged, self.acknowledged_length, now)
            return effects + self._go_on_forcing(now)
        effects += self._forcing.fail(self.error)
        return effects if self._change is not None else effects + self._close_metadata()

    def _fail_close(self, error: BookKeeperError) -> list[Effect]:
        """What is acknowledged cannot be made durable: the ledger stays open. Only a close without force may follow."""
        self._closes_when_forced = False
        self.state = WriterState.FAILED
        self.error = error
        self._may_close = True
        return [CloseFailed(error)]

    def _close_metadata(self) -> list[Effect]:
        effects: list[Effect] = []
        for seat in self._seats:
            if not seat.live:
                self._note_missing(seat, effects)
        return [*effects, CloseMetadata(self.last_add_confirmed, self.confirmed_length)]

    def on_closed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The ledger is closed as asked; ``metadata`` is what is stored."""
        check(metadata.last_entry >= self.last_add_confirmed, "R11", f"closed at {metadata.last_entry}: {self!r}")
        self.metadata = metadata
        self.state = WriterState.CLOSED
        return []

    def on_close_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """It could not be closed (fenced, closed with another end, store away).

        Retryable: ``close`` may be called again; the handle takes no more adds either way.
        """
        if self.state is WriterState.CLOSING:
            self.state = WriterState.FAILED
            self.error = error
            self._may_close = error.retryable
        return []

    # -- time -------------------------------------------------------------------------------------------

    def _wake_by(self, time: float, effects: list[Effect]) -> None:
        if self._wake_at is None or time < self._wake_at:
            self._wake_at = time
            effects.append(WakeAt(time))

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: deadlines, hung bookies, retries."""
        self._wake_at = None
        effects = self._forcing.on_tick(now, self._seats, self.last_acknowledged, self.acknowledged_length)
        if effects or self._forcing.active:
            effects = self._after_force_failed(effects, now)
        if self.state is not WriterState.OPEN:
            return effects
        if self._pending and now >= self._pending[0].deadline:
            return effects + self._fail(self._timeout_error())
        if self._fail_those_who_hang(now, effects):
            return effects
        if self._retry_at is not None and now >= self._retry_at:
            self._change_ensemble(now, effects)
        wishes = [self._retry_at] if self._retry_at is not None else []
        if self._pending:
            wishes.append(self._pending[0].deadline)
        if any(seat.live and seat.acks.mark < self.next_entry for seat in self._seats):
            wishes.append(now + self._laggards.stall_ms / 4000)
        if wishes:
            self._wake_by(min(wishes), effects)
        return effects

    def _timeout_error(self) -> AddTimeoutError:
        down = ", ".join(self.failed_bookies) or "none"
        error = AddTimeoutError(
            f"entry {self.last_acknowledged + 1} found no ack quorum of {self.spec.ack_quorum} within "
            f"{self.config.add_timeout_ms} ms; failed bookies: {down}"
            + ("; an ensemble change was in flight" if self._change else "")
        )
        error.__cause__ = self._last_failure
        return error

    def _fail_those_who_hang(self, now: float, effects: list[Effect]) -> bool:
        """A live bookie with something unanswered that stood still while another moved on (D13).

        True: that ended the handle (W11).
        """
        hanging = self._laggards.hanging(self._seats, self.next_entry, now)
        for seat in hanging:
            stall = RequestTimedOutError(f"{seat.bookie} stood still for {self._laggards.stall_ms} ms")
            if self._deferred:
                effects += self._fail(_lost(seat.bookie, stall))
                return True
            self._last_failure = stall
            self._drop(seat, effects)
        if hanging:
            self._change_ensemble(now, effects)
        return False

    def _fail_those_who_trail(self, now: float, effects: list[Effect]) -> None:
        """A live bookie behind which ``trail_bytes_max`` have piled up (D13); with deferred sync callers wait (W11)."""
        self._laggards.step(self.acknowledged_length, self.last_acknowledged)
        trailing = self._laggards.trailing(self._seats)
        if self._deferred:
            self._held_up = bool(trailing)
            return
        for seat in trailing:
            self._last_failure = RequestTimedOutError(f"{seat.bookie} trails by {self.config.trail_bytes_max} bytes")
            self._drop(seat, effects)
        if trailing:
            self._change_ensemble(now, effects)


def _lost(bookie: BookieId, error: BookKeeperError) -> BookieFailedError:
    """W11: what a bookie acknowledged without a sync may be lost with it."""
    failure = BookieFailedError(
        f"{bookie} failed, and a ledger with deferred_sync has no ensemble change: nothing more can be appended or "
        f"forced. A recovery (open_ledger) keeps what its other bookies have; close(force=False) ends the ledger at "
        f"the last add confirmed. The failure: {error}"
    )
    failure.__cause__ = error
    return failure
