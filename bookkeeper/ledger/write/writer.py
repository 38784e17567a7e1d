"""The machine that writes a ledger. It performs nothing itself.

``LedgerWriter`` is told what happened and answers with what to do, in runs of consecutive entries. Payloads stay with
the shell: the machine knows their ids and sizes.

    open     -- on_bookie_failed -->  open, a change in flight: adds are sent, confirms are held (W4)
             -- on_ensemble_changed | on_change_failed(no spare, store away) -->  open
    open     -- on_fenced, deadline, on_change_failed(closed, ...) -->  failed, for good (W6)
    open     -- close -->  closing  -- on_closed -->  closed

The writer owns the ids, the pending adds and the end. It asks three parts and builds every effect itself:

    WriterEnsemble   who is in the ensemble, who failed or lags, and what to do about it, as a verdict
    SyncPolicy       what an ack means: durable, or written and to be forced
    ForceRounds      which bookies have made what durable

Rules
    W1   A confirmed entry is on Qa bookies of its write set, by committed metadata.
    W2   Entries are confirmed in id order, each once.
    W3   ``last_add_confirmed`` is the highest confirmed id and never falls; packets carry at most that.
    W4   Nothing is confirmed while an ensemble change is in flight. Then acks of replaced bookies no longer count.
    W5   The new fragment begins at last add confirmed + 1, which does not move meanwhile.
    W6   A failed writer stays failed: all pending adds fail in order, and late replies change nothing.
    W7   The outcome of a failed add is unknown; the entry may be in the ledger.
    W8   Packets are built once (``Encode``) and sent again as they are, until ``Release``.
    W9   One fenced reply ends the handle, and never changes the ensemble.
    W10b A bookie whose connection was lost counts again only after the ledger was seen OPEN with it in the last
         fragment.
    W11  With deferred sync an ack moves ``last_acknowledged`` only; ``last_add_confirmed`` follows with ``force``
         (``force_rounds``). There is no ensemble change: a bookie that fails ends the handle,
         because what it acknowledged may be lost. Callers wait for a bookie that lags.
    W12  ``must_wait`` bounds what is pending.
    R13  Closing fails what is pending first, and closes only from OPEN; with deferred sync it forces in between.
    W13  Without a spare bookie appends go on; only the deadline of an append ends the handle.
    W15  A bookie that stands still while others progress, or trails too far, counts as failed.
    W16  When the last add confirmed has moved and nothing is pending, it is sent on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bookkeeper.errors import (
    AddTimeoutError,
    BookKeeperError,
    ClientClosedError,
    LedgerClosedError,
    NoSuchLedgerError,
    TooManyRequestsError,
    check,
)
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.ensemble import (
    EndWriter,
    EnsembleMember,
    Readmit,
    Replace,
    Verdict,
    Wait,
    WatchAgain,
    WriterEnsemble,
    fenced_error,
)
from bookkeeper.ledger.ensemble.sync_policy import sync_policy
from bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from bookkeeper.ledger.write.effects import (
    ChangeEnsemble,
    ChangeFailure,
    CloseFailed,
    CloseMetadata,
    Confirm,
    Effect,
    Encode,
    FailAdds,
    ForceFailed,
    MoreRoom,
    NoteMissing,
    PublishLac,
    Release,
    SendAdds,
    WatchIncarnation,
)
from bookkeeper.ledger.write.force_rounds import ForceRounds
from bookkeeper.ledger.write.writer_parts import PendingAdds, PendingQueue, WriterState


class LedgerWriter:
    """Appends to one ledger. ``metadata`` is as it was committed when the ledger was created: OPEN and empty."""

    def __init__(self, metadata: LedgerMetadata, config: WriterConfig | None = None) -> None:
        assert metadata.state is LedgerState.OPEN and len(metadata.fragments) == 1, metadata
        self.spec = metadata.spec
        self.config = config or WriterConfig()
        self.state = WriterState.OPEN
        self.metadata = metadata
        """The metadata as last committed or read."""
        self.error: BookKeeperError | None = None
        """Why nothing can be appended any more; None while appends are possible."""
        self.next_entry = EntryId(0)
        """The id of the next append."""
        self.last_acknowledged: EntryId = NO_ENTRY
        """The highest id whose caller was answered: the last add confirmed, or above it with deferred sync (W11)."""
        self.acknowledged_length = 0
        """Payload bytes of entries 0 .. last_acknowledged."""
        self.last_add_confirmed: EntryId = NO_ENTRY
        self.pending_bytes = 0
        """Payload bytes appended and not acknowledged (W12)."""
        self._pending = PendingQueue()
        self._sync = sync_policy(self.config)
        self._ensemble = WriterEnsemble(self.spec, metadata.last_fragment.ensemble, self.config, self._sync)
        self._forcing = ForceRounds(self.config.force_timeout_ms)
        self._striped = self.spec.is_striped
        self._lac_told: EntryId = NO_ENTRY
        self._wake_at: float | None = None
        self._may_close = True
        self._closes_when_forced = False
        """Whether a close waits only for the force of what is acknowledged (W11)."""

    def __repr__(self) -> str:
        held = ", changing" if self.is_changing else ""
        lac, following = self.last_add_confirmed, self.next_entry
        return f"<{self.state.value}{held}, lac={lac}, next={following}, {self._ensemble!r}>"

    @property
    def confirmed_length(self) -> int:
        """Payload bytes of entries 0 .. last_add_confirmed."""
        return self._sync.visible(self.acknowledged_length, self._forcing.forced_length)

    @property
    def failed_bookies(self) -> tuple[BookieId, ...]:
        """The members of the ensemble to which nothing is sent now."""
        return self._ensemble.failed_bookies

    @property
    def is_changing(self) -> bool:
        """Whether an ensemble change is in flight, so that nothing is confirmed."""
        return self._ensemble.changing is not None

    # -- adding -----------------------------------------------------------------------------------------

    @property
    def pending_entries(self) -> int:
        """Entries appended and not acknowledged (W12)."""
        return self.next_entry - self.last_acknowledged - 1

    @property
    def must_wait(self) -> bool:
        """Whether callers must wait for confirms before they append more (W12). ``add`` itself never refuses."""
        return (
            self.pending_bytes >= self.config.pending_bytes_max
            or self.next_entry - self.last_acknowledged - 1 >= self.config.pending_entries_max
            or self._ensemble.holds_up_callers
        )

    def add(self, sizes: Sequence[int], now: float) -> tuple[EntryId, list[Effect]]:
        """Append a run of payloads of these sizes in bytes; ``sizes`` must not be changed afterwards.

        Returns the first id. Raises: ``error``, which ended the handle.
        """
        if self.state is not WriterState.OPEN:
            raise self.error or LedgerClosedError("the ledger is closed")
        first, count = self.next_entry, len(sizes)
        if not count:
            return first, []
        run = PendingAdds(first, sizes, now + self.config.add_timeout_ms / 1000)
        lac = self.last_add_confirmed
        effects: list[Effect] = [Encode(first, count, lac, self.acknowledged_length + self.pending_bytes)]
        self._pending.append(run)
        self.pending_bytes += run.bytes
        self.next_entry = EntryId(first + count)
        if lac > self._lac_told:
            self._lac_told = lac
        for member in self._ensemble.members:
            if member.live:
                if member.acks.mark >= first:
                    member.progress_at = now
                if not self._striped or self.spec.stripe_size(member.position, first, count):
                    effects.append(SendAdds(member.bookie, first, count, member.position))
        self._wake_by(min(run.deadline, now + self._sync.stall_ms / 1000), effects)
        return first, effects

    def _send(self, member: EnsembleMember, first: int, effects: list[Effect]) -> None:
        """Send a member its share of everything from ``first`` on."""
        count = self.next_entry - first
        if count > 0 and (not self._striped or self.spec.stripe_size(member.position, first, count)):
            effects.append(SendAdds(member.bookie, EntryId(first), count, member.position))

    def send_again(self, bookie: BookieId, first: int, count: int, kept_from: int) -> list[Effect]:
        """Send ``bookie`` entries again for which it had no room a while ago. That is no failure: W15 decides.

        Args:
            kept_from: packets below this entry were released, so that the bookie will never get them (W14).
        """
        member = self._ensemble.live_member(bookie)
        if (self.state is not WriterState.OPEN and not self._closes_when_forced) or member is None:
            return []
        known = self.next_entry if self.state is WriterState.OPEN else self.last_acknowledged + 1  # R13
        end, effects = min(first + count, known), list[Effect]()
        if first < kept_from:
            gone = min(end, kept_from)
            check(gone <= self.last_add_confirmed + 1, "W8", f"entry {gone - 1} is pending and its packet is gone")
            self._note_missing(member, first, gone - 1, effects)
            member.acks.add(first, gone)  # confirmed entries need no more acks; the mark must not stand here
            first = gone
        if first < end and (not self._striped or self.spec.stripe_size(member.position, first, end - first)):
            effects.append(SendAdds(bookie, EntryId(first), end - first, member.position))
        return effects

    def on_acks(self, bookie: BookieId, first: int, count: int, now: float) -> list[Effect]:
        """``bookie`` has stored its share of ``first .. first + count - 1``."""
        member = self._ensemble.by_bookie.get(bookie)
        if member is None or not member.live:
            return []  # the bookie was replaced (W4) or is not checked yet (W10b)
        if self.state is not WriterState.OPEN and not self._forcing.active:
            if self.state is WriterState.CLOSING:  # too late to count; ``on_closed`` asks who has what (W14)
                member.acks.add(first, min(first + count, self.next_entry))
            return []  # the writer ended (W6)
        if not member.acks.add(first, min(first + count, self.next_entry)):
            return []
        member.progress_at = now
        member.suspected_at = None
        effects = self._confirm(now)
        if self._forcing.active or self._ensemble.holds_up_callers:
            effects += self._go_on_after_ack(now)
        return effects

    def on_ack_ids(self, bookie: BookieId, ids: Iterable[int], now: float) -> list[Effect]:
        """``bookie`` has stored exactly these entries (for E > Qw, where its ids have holes)."""
        effects: list[Effect] = []
        for entry_id in ids:
            effects += self.on_acks(bookie, entry_id, 1, now)
        return effects

    def _confirm(self, now: float) -> list[Effect]:
        """Confirm the acknowledged prefix (W1, W2), unless an ensemble change is in flight (W4)."""
        ensemble = self._ensemble
        if not self._pending or ensemble.changing is not None or self.state is not WriterState.OPEN:
            return []
        first = self.last_acknowledged + 1
        end = self._acknowledged_end()
        if end == first:
            return []
        dropped = self._pending.drop_below(end)
        self.pending_bytes -= dropped
        self.acknowledged_length += dropped
        self.last_acknowledged = EntryId(end - 1)
        self.last_add_confirmed = EntryId(self._sync.visible(self.last_acknowledged, self._forcing.forced))
        effects: list[Effect] = [Confirm(EntryId(first), end - first), self._release_acknowledged()]
        if not self._pending:
            effects.append(PublishLac(self.last_add_confirmed, ensemble.live_bookies))
        self._follow(ensemble.on_acknowledged(self.acknowledged_length, self.last_acknowledged), now, effects)
        return effects

    def _acknowledged_end(self) -> int:
        """The lowest id that no ack quorum has acknowledged, by the acks that count now."""
        end = self.last_acknowledged + 1
        while end < self.next_entry:
            reached = self.spec.acknowledged_below(end, [m.acks.end_from(end) for m in self._ensemble.members])
            if reached <= end:
                break
            end = min(reached, self.next_entry)
        return end

    def _release_acknowledged(self) -> Release:
        """The packets that are never sent again."""
        end = self._sync.releasable(self.last_acknowledged + 1, self._ensemble.members)
        return Release(EntryId(end - 1))

    # -- a bookie fails, or returns ---------------------------------------------------------------------

    def on_bookie_failed(self, bookie: BookieId, error: BookKeeperError, now: float) -> list[Effect]:
        """An add failed on ``bookie``, or the connection to it was lost, also with nothing in flight (W10b).

        A fenced or unauthorised reply ends the handle. After anything else the bookie counts as failed.
        """
        effects: list[Effect] = []
        if self.state is WriterState.OPEN or self._closes_when_forced:
            self._follow(self._ensemble.on_bookie_failed(bookie, error), now, effects)
        return effects

    def on_fenced(self, now: float) -> list[Effect]:
        """A bookie of the ensemble said that the ledger is fenced (W9)."""
        return self._fail(fenced_error())

    def on_bookie_returned(self, bookie: BookieId, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """``bookie`` answers again. ``metadata`` were read after that, after a sync (W10b)."""
        if self.state is not WriterState.OPEN or bookie not in self._ensemble.failed_bookies:
            return []
        if metadata.state is not LedgerState.OPEN:
            return self._end_of_ledger(metadata)
        effects: list[Effect] = []
        self._follow(self._ensemble.on_bookie_returned(bookie, metadata.last_fragment), now, effects)
        return effects + self._go_on(now)

    def _follow(self, verdict: Verdict, now: float, effects: list[Effect]) -> None:
        """Turn a verdict of the ensemble into effects."""
        match verdict:
            case Wait():
                pass
            case WatchAgain(bookie):
                effects.append(WatchIncarnation(bookie))
            case Replace(bookies):
                effects += [WatchIncarnation(bookie) for bookie in bookies]
                self._change_ensemble(now, effects)
            case Readmit(member):
                self._readmit(member, now, effects)
            case EndWriter(error):
                effects += self._fail_force(error, now) if self._closes_when_forced else self._fail(error)

    def _readmit(self, member: EnsembleMember, now: float, effects: list[Effect]) -> None:
        """Use a bookie again: send it its share from the first unconfirmed entry on."""
        self._note_missing(member, 0, self.last_add_confirmed, effects)
        start = self.last_add_confirmed + 1
        self._ensemble.readmit(member, start, now)
        self._send(member, start, effects)
        self._wake_by(now + self._sync.stall_ms / 1000, effects)

    def _note_missing(self, member: EnsembleMember, first: int, last: int, effects: list[Effect]) -> None:
        """Note which of these confirmed entries a member never acknowledged (W14)."""
        effects += [NoteMissing(member.bookie, low, high) for low, high in self._ensemble.missing(member, first, last)]

    # -- changing the ensemble --------------------------------------------------------------------------

    def _change_ensemble(self, now: float, effects: list[Effect]) -> None:
        """Ask for stand-ins for all failed members, one change at a time. Nothing is confirmed meanwhile (W4)."""
        plan = self._ensemble.plan_change(now)
        if plan is not None:
            start = EntryId(self.last_add_confirmed + 1)
            effects.append(ChangeEnsemble(plan.failed, plan.keep, start, plan.attempt))
        elif self._ensemble.retry_at is not None:
            self._wake_by(self._ensemble.retry_at, effects)

    def on_ensemble_changed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The change that was asked for is committed; ``metadata`` are stored."""
        asked = self._ensemble.end_change()
        if self.state is WriterState.CLOSING:
            seated = self._seat_committed(metadata, now) if metadata.state is LedgerState.OPEN else []
            return seated + self._close_metadata()
        if self.state is not WriterState.OPEN or asked is None:
            return []
        if metadata.state is not LedgerState.OPEN:
            return self._end_of_ledger(metadata)
        effects = self._seat_committed(metadata, now)
        self._readmit_returned(now, effects)
        failed = self._ensemble.failed_bookies
        if set(failed) - set(asked):
            self._change_ensemble(now, effects)
        elif failed:
            self._wake_by(self._ensemble.retry_later(now), effects)
        if self.next_entry > self.last_acknowledged + 1:
            self._wake_by(now + self._sync.stall_ms / 1000, effects)
        return effects + self._go_on(now)

    def _seat_committed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """Take the ensemble from committed metadata. A member that stays keeps its place and acks; a new one gets its
        share of everything pending."""
        start = self.last_add_confirmed + 1
        taken_over = self._ensemble.seat(metadata.last_fragment, start, now)
        self.metadata = metadata
        effects: list[Effect] = []
        for left, came in taken_over:
            self._note_missing(left, 0, self.last_add_confirmed, effects)
            if self.state is WriterState.OPEN:
                self._send(came, start, effects)
        return effects

    def _readmit_returned(self, now: float, effects: list[Effect]) -> None:
        for member in self._ensemble.returned():
            self._readmit(member, now, effects)

    def on_change_failed(self, reason: ChangeFailure, now: float) -> list[Effect]:
        """The change that was asked for was not made, or the stored metadata say that the ledger has ended."""
        asked = self._ensemble.end_change()
        if self.state is WriterState.CLOSING and asked is not None:
            return self._close_metadata()
        if self.state is not WriterState.OPEN:
            return []
        match reason:
            case ChangeFailure.CLOSED:
                return self._fail(LedgerClosedError("the ledger was closed by a recovery"))
            case ChangeFailure.IN_RECOVERY:
                return self._fail(fenced_error())
            case ChangeFailure.DELETED:
                return self._fail(NoSuchLedgerError("the ledger was deleted"))
            case ChangeFailure.NO_SPARE | ChangeFailure.STORE_AWAY:
                effects: list[Effect] = []
                self._readmit_returned(now, effects)
                if self._ensemble.failed_bookies:
                    self._wake_by(self._ensemble.retry_later(now), effects)
                return effects + self._go_on(now)

    def on_spares_changed(self, now: float) -> list[Effect]:
        """A bookie appeared that may stand in."""
        effects: list[Effect] = []
        if self.state is WriterState.OPEN:
            self._ensemble.on_spares_changed(now)
            self._change_ensemble(now, effects)
        return effects

    def _go_on(self, now: float) -> list[Effect]:
        """Confirm and force what is possible now that the ensemble has changed."""
        return self._confirm(now) + self._go_on_forcing(now)

    # -- making durable what is only written (W11) ------------------------------------------------------

    def force(self, now: float) -> tuple[int, list[Effect]]:
        """Make durable, on every bookie, what is acknowledged now.

        Returns the number of the force; ``Forced`` or ``ForceFailed`` reports its end. Raises: ``error``, which ended
        the handle.
        """
        if self.state is not WriterState.OPEN:
            raise self.error or LedgerClosedError("the ledger is closed")
        number = self._forcing.ask(self.last_acknowledged, self.acknowledged_length, now)
        return number, self._go_on_forcing(now)

    def on_forced(self, bookie: BookieId, number: int, now: float) -> list[Effect]:
        """``bookie`` has made durable what it had acknowledged when it was asked (``ForceLedger``)."""
        self._forcing.on_forced(bookie, number)
        return self._go_on_forcing(now)

    def on_force_failed(self, bookie: BookieId, number: int, error: BookKeeperError, now: float) -> list[Effect]:
        """``bookie`` could not. The handle goes on, unless the connection was lost, which is reported by itself.

        One that only had no room is asked again for a close, which cannot be repeated if its force fails.
        """
        if self._closes_when_forced and isinstance(error, TooManyRequestsError):
            return self._forcing.ask_again(bookie, number)
        effects = self._forcing.on_failed(number, error, self.last_acknowledged, self.acknowledged_length)
        return self._after_force_failed(effects, now)

    def _go_on_forcing(self, now: float) -> list[Effect]:
        forcing = self._forcing
        effects = forcing.proceed(self._ensemble.members, self.last_acknowledged, self.acknowledged_length)
        visible = self._sync.visible(self.last_acknowledged, forcing.forced)
        if visible > self.last_add_confirmed:
            self.last_add_confirmed = EntryId(visible)
            if self.state is WriterState.OPEN and not self._pending:
                effects.append(PublishLac(self.last_add_confirmed, self._ensemble.live_bookies))
        if self._closes_when_forced and self.last_add_confirmed == self.last_acknowledged:
            self._closes_when_forced = False
            effects += self._close_metadata()
        if forcing.deadline is not None:
            self._wake_by(forcing.deadline, effects)
        return effects

    def _after_force_failed(self, effects: list[Effect], now: float) -> list[Effect]:
        """A force has failed. If a close waited for it, the close has failed, too."""
        if self._closes_when_forced and not self._forcing.active:
            failed = [effect.error for effect in effects if isinstance(effect, ForceFailed)]
            return effects + self._fail_close(failed[-1])
        return effects + self._go_on_forcing(now)

    def _fail_force(self, error: BookKeeperError, now: float) -> list[Effect]:
        return self._after_force_failed(self._forcing.fail(error), now)

    def _go_on_after_ack(self, now: float) -> list[Effect]:
        effects = self._go_on_forcing(now)
        if self._ensemble.has_caught_up():
            effects.append(MoreRoom())
        return effects

    # -- last add confirmed without an add (W16) --------------------------------------------------------

    def lac_to_publish(self) -> EntryId | None:
        """The last add confirmed to send on its own now; None if the next add will carry it anyway."""
        news = self.last_add_confirmed > self._lac_told
        return self.last_add_confirmed if news and not self._pending and self.state is WriterState.OPEN else None

    def is_last_word(self, lac: EntryId) -> bool:
        """Whether no entry has been added or confirmed since the explicit last add confirmed ``lac`` was sent."""
        return lac == self.last_add_confirmed and not self._pending and self.state is WriterState.OPEN

    def on_lac_published(self, lac: EntryId) -> None:
        """The explicit last add confirmed ``lac`` was sent."""
        self._lac_told = max(self._lac_told, lac)

    # -- the end ----------------------------------------------------------------------------------------

    def _end_of_ledger(self, metadata: LedgerMetadata) -> list[Effect]:
        """End the writer, because the stored metadata say that it may not write any more."""
        self.metadata = metadata
        if metadata.is_closed:
            return self._fail(LedgerClosedError(f"a recovery closed the ledger at entry {metadata.last_entry}"))
        return self._fail(fenced_error())

    def _fail(self, error: BookKeeperError) -> list[Effect]:
        """End for good (W6). The outcome of every pending add is unknown (W7)."""
        if self.state is not WriterState.OPEN:
            return []  # a close that is under way meets the same reason
        self.state = WriterState.FAILED
        self.error = error
        self._may_close = self._sync.may_close_after(error)
        return self._fail_pending(error) + self._forcing.fail(error)

    def on_broken(self, error: BookKeeperError) -> list[Effect]:
        """The shell cannot continue: accept and confirm nothing any more (W6). A recovery decides the end."""
        return self._fail(error)

    def _fail_pending(self, error: BookKeeperError, *, forces: bool = False) -> list[Effect]:
        """Fail all pending adds. ``forces``: keep the packets that a bookie without room may still need."""
        first, count = EntryId(self.last_acknowledged + 1), self.pending_entries
        self._pending.clear()
        self.pending_bytes = 0
        if not count:
            return []
        release = self._release_acknowledged() if forces else Release(EntryId(first + count - 1))
        return [FailAdds(first, count, error), release]

    def close(self, now: float, *, force: bool = True) -> list[Effect]:
        """Fail what is pending, then close at the last add confirmed (R13). Idempotent: later calls return [].

        A handle that failed because too few bookies answered may be closed, too.

        Args:
            force: with deferred sync: force in between, so that everything acknowledged is part of the closed ledger.

        Raises: the error that ended the handle, if it may not close the ledger, or cannot force it, any more.
        """
        if self.state in (WriterState.CLOSING, WriterState.CLOSED):
            return []
        unforced = self.last_acknowledged > self.last_add_confirmed
        if self.error is not None and (not self._may_close or (force and unforced)):
            raise self.error
        self.error = LedgerClosedError("the ledger was closed by its writer")
        forces = force and unforced
        effects = self._fail_pending(self.error, forces=forces) if self.state is WriterState.OPEN else []
        self.state = WriterState.CLOSING
        if forces:
            self._closes_when_forced = True
            self._forcing.ask(self.last_acknowledged, self.acknowledged_length, now)
            return effects + self._go_on_forcing(now)
        effects += self._forcing.fail(self.error)
        return effects if self.is_changing else effects + self._close_metadata()

    def may_close_again(self, error: BaseException | None, *, force: bool) -> bool:
        """May ``close(force=force)`` follow one that ended with ``error``?

        Yes if it failed for want of the metadata store, or of a force that is not wanted any more.
        """
        if not isinstance(error, BookKeeperError) or isinstance(error, ClientClosedError):
            return False
        return (error.retryable or not force) and self._may_close

    def _fail_close(self, error: BookKeeperError) -> list[Effect]:
        """Fail the close: what is acknowledged cannot be made durable, so the ledger stays open. Only a close without
        force may follow."""
        self._closes_when_forced = False
        self.state = WriterState.FAILED
        self.error = error
        self._may_close = True
        return [CloseFailed(error)]

    def _close_metadata(self) -> list[Effect]:
        effects: list[Effect] = []
        for member in self._ensemble.members:
            if not member.live:
                self._note_missing(member, 0, self.last_add_confirmed, effects)
        return [*effects, CloseMetadata(self.last_add_confirmed, self.confirmed_length)]

    @property
    def is_lagging(self) -> bool:
        """Has a live bookie not acknowledged its share of what the ledger is closed with?"""
        last = self.last_add_confirmed
        return any(member.live and any(self._ensemble.missing(member, 0, last)) for member in self._ensemble.members)

    def on_closed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The ledger is closed as asked; ``metadata`` are stored. Bookies that have not acknowledged everything by now
        are noted (W14): nothing that is sent to them is looked at any more."""
        check(metadata.last_entry >= self.last_add_confirmed, "R11", f"closed at {metadata.last_entry}: {self!r}")
        self.metadata = metadata
        self.state = WriterState.CLOSED
        effects: list[Effect] = []
        for member in self._ensemble.members:
            if member.live:  # the others were noted when the close began
                self._note_missing(member, 0, self.last_add_confirmed, effects)
        return effects

    def on_close_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """The ledger could not be closed: it is fenced or closed with another end, or the store does not answer.

        After a retryable error ``close`` may be called again. The handle accepts no more adds in any case.
        """
        if self.state is WriterState.CLOSING:
            self.state = WriterState.FAILED
            self.error = error
            self._may_close = error.retryable
        return []

    # -- time -------------------------------------------------------------------------------------------

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: deadlines, hung bookies, retries."""
        self._wake_at = None
        ensemble, forcing = self._ensemble, self._forcing
        effects = forcing.on_tick(now, ensemble.members, self.last_acknowledged, self.acknowledged_length)
        if effects or forcing.active:
            effects = self._after_force_failed(effects, now)
        if self.state is not WriterState.OPEN:
            return effects
        if self._pending and now >= self._pending[0].deadline:
            return effects + self._fail(self._timeout_error())
        self._follow(ensemble.on_tick(self.next_entry, now), now, effects)
        if self.error is not None:
            return effects
        if ensemble.retry_at is not None and now >= ensemble.retry_at:
            self._change_ensemble(now, effects)
        times = [ensemble.retry_at] if ensemble.retry_at is not None else []
        if self._pending:
            times.append(self._pending[0].deadline)
        if ensemble.owes(self.next_entry):
            times.append(now + self._sync.stall_ms / 4000)
        if times:
            self._wake_by(min(times), effects)
        return effects

    def _wake_by(self, time: float, effects: list[Effect]) -> None:
        if self._wake_at is None or time < self._wake_at:
            self._wake_at = time
            effects.append(WakeAt(time))

    def _timeout_error(self) -> AddTimeoutError:
        quorum = "1 bookie" if self.spec.ack_quorum == 1 else f"{self.spec.ack_quorum} bookies"
        error = AddTimeoutError(
            f"entry {self.last_acknowledged + 1} was not acknowledged by an ack quorum ({quorum}) within "
            f"{self.config.add_timeout_ms} ms; failed bookies: {self._ensemble.failures}"
            + ("; an ensemble change was in flight" if self.is_changing else "")
        )
        error.__cause__ = self._ensemble.last_failure
        return error

    # -- for tests --------------------------------------------------------------------------------------

    def validate_state(self) -> None:
        """Derive again what must hold between the fields, from acks, members, pending adds and metadata. For tests.

        Raises: InvariantError.
        """
        self._ensemble.validate_state()
        self._forcing.validate_state(self.last_acknowledged)
        is_open = self.state is WriterState.OPEN
        check(is_open == (self.error is None), "W6", (self, self.error))
        in_order = NO_ENTRY <= self.last_add_confirmed <= self.last_acknowledged < self.next_entry
        check(in_order, "W3", (self.last_acknowledged, self))
        visible = self._sync.visible(self.last_acknowledged, self._forcing.forced)
        check(self.last_add_confirmed == visible, "W11", (visible, self))
        closes_by_force = self.state is WriterState.CLOSING and self._forcing.active
        check(closes_by_force or not self._closes_when_forced, "W11", self)
        following = self.next_entry if is_open else None
        self._pending.validate_state(self.last_acknowledged + 1, following, self.pending_bytes)
        if is_open:
            self._validate_confirms()

    def _validate_confirms(self) -> None:
        members = self._ensemble.members
        bookies = tuple(member.bookie for member in members)
        check(self.metadata.last_fragment.ensemble == bookies, "W1", (self.metadata.last_fragment, self))
        for member in members:
            limit = self.spec.next_held(member.position, self.next_entry)
            check(member.acks.mark <= limit, "W1", (member.bookie, self))
            check(self.is_changing or not member.returned, "W10b", (member.bookie, self))
        held = self.is_changing or self._acknowledged_end() == self.last_acknowledged + 1
        check(held, "W4", self)
        if self._pending:
            deadline = self._pending[0].deadline
            check(self._wake_at is not None and self._wake_at <= deadline, "V1", (deadline, self))
