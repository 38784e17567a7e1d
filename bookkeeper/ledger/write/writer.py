"""The machine that writes a ledger. It performs nothing itself.

``LedgerWriter`` is told what happened and answers with what to do, in runs of consecutive entries. Payloads stay with
the shell: the machine knows their ids and sizes.

    open     -- on_bookie_failed -->  open, a change in flight: adds are sent, confirms are held (W4)
             -- on_ensemble_changed | on_change_failed(no spare, store away) -->  open
    open     -- on_fenced, deadline, on_change_failed(closed, ...) -->  failed, for good (W6)
    open     -- close -->  closing  -- on_closed -->  closed

The writer decides when an entry is confirmed, and hands every event to the parts that it concerns:

    WriterProgress    which entries were given, acknowledged and confirmed, and what is pending
    WriterEnsemble    who is in the ensemble, who failed or lags, and what to do about it, as a verdict
    EnsembleChanges   performs these verdicts; asks for changes, uses bookies again
    MemberShares      which entries each bookie is sent, and which it never got
    SyncPolicy        what an ack means: durable, or written and to be forced
    ForceRounds       which bookies have made what durable
    WriterEnd         whether it is open, why it is not, whether it may still close the ledger
    Alarm             when it has to be woken

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
         (``force_rounds``). There is no ensemble change: a bookie that fails ends the handle, because what it
         acknowledged may be lost. Callers wait for a bookie that lags.
    W12  ``must_wait`` bounds what is pending.
    R13  Closing fails what is pending first, and closes only from OPEN; with deferred sync it forces in between.
    W13  Without a spare bookie appends go on; only the deadline of an append ends the handle.
    W15  A bookie that stands still while others progress, or trails too far, counts as failed.
    W16  When the last add confirmed has moved and nothing is pending, it is sent on its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from bookkeeper.errors import BookKeeperError, LedgerClosedError, TooManyRequestsError, check
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.ensemble.sync_policy import sync_policy
from bookkeeper.ledger.ensemble.writer_ensemble import WAIT, Verdict, WriterEnsemble, fenced_error
from bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from bookkeeper.ledger.write.alarm import Alarm
from bookkeeper.ledger.write.confirm_checks import check_confirms
from bookkeeper.ledger.write.effects import (
    ChangeFailure,
    CloseFailed,
    CloseMetadata,
    Confirm,
    Effect,
    Encode,
    FailAdds,
    ForceFailed,
    PublishLac,
    Release,
    ResumeCallers,
)
from bookkeeper.ledger.write.end_reasons import ended_by, ended_while_changing, not_acknowledged
from bookkeeper.ledger.write.ensemble_changes import EnsembleChanges
from bookkeeper.ledger.write.force_rounds import ForceRounds
from bookkeeper.ledger.write.member_shares import MemberShares
from bookkeeper.ledger.write.progress import WriterProgress
from bookkeeper.ledger.write.writer_end import CLOSING, OPEN, WriterEnd, WriterState


class LedgerWriter:
    """Appends to one ledger. ``metadata`` is as it was committed when the ledger was created: OPEN and empty."""

    def __init__(self, metadata: LedgerMetadata, config: WriterConfig | None = None) -> None:
        assert metadata.state is LedgerState.OPEN and len(metadata.fragments) == 1, metadata
        self.spec = metadata.spec
        self.config = config or WriterConfig()
        self.metadata = metadata
        """The metadata as last committed or read."""
        self.progress = WriterProgress()
        """Which entries were given, acknowledged and confirmed. Others only look at it."""
        self._sync = sync_policy(self.config)
        self._ensemble = WriterEnsemble(self.spec, metadata.last_fragment.ensemble, self.config, self._sync)
        self._forcing = ForceRounds(self.config.force_timeout_ms)
        self._end = WriterEnd(self._sync)
        self._alarm = Alarm()
        self._shares = MemberShares(self.spec, self._ensemble, self.progress)
        self._limit_s = self.config.add_timeout_ms / 1000
        """Within this time an ack quorum must acknowledge an entry."""
        self._first_check_s = min(self.config.add_timeout_ms, self._sync.stall_ms) / 1000
        """After this time an entry that is not acknowledged is looked at first."""
        self._changes = EnsembleChanges(self._ensemble, self._shares, self.progress, self._alarm, self._sync.stall_ms)

    def __repr__(self) -> str:
        held = ", changing" if self.is_changing else ""
        lac, following = self.progress.last_add_confirmed, self.progress.next_entry
        return f"<{self.state.value}{held}, lac={lac}, next={following}, {self._ensemble!r}>"

    @property
    def state(self) -> WriterState:
        """Where the writer stands; see the drawing above."""
        return self._end.state

    @property
    def error(self) -> BookKeeperError | None:
        """Why nothing can be appended any more; None while appends are possible."""
        return self._end.error

    @property
    def confirmed_length(self) -> int:
        """Payload bytes of entries 0 .. last_add_confirmed."""
        return self._sync.visible(self.progress.acknowledged_length, self._forcing.forced_length)

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
    def must_wait(self) -> bool:
        """Whether callers must wait for confirms before they append more (W12). ``add`` itself never refuses."""
        progress = self.progress
        return (
            progress.pending_bytes >= self.config.pending_bytes_max
            or progress.next_entry - progress.last_acknowledged - 1 >= self.config.pending_entries_max
            or self._ensemble.holds_up_callers
        )

    def add(self, sizes: Sequence[int], now: float) -> tuple[EntryId, list[Effect]]:
        """Append a run of payloads of these sizes in bytes; ``sizes`` must not be changed afterwards.

        Returns the first id. Raises: ``error``, which ended the handle.
        """
        if self._end.state is not OPEN:
            raise self.error or LedgerClosedError("the ledger is closed")
        progress = self.progress
        first, count = progress.next_entry, len(sizes)
        if not count:
            return first, []
        length_before = progress.acknowledged_length + progress.pending_bytes
        effects: list[Effect] = [Encode(first, count, progress.last_add_confirmed, length_before)]
        progress.append(sizes, now + self._limit_s)
        self._shares.send(first, count, now, effects)
        self._alarm.wake_by(now + self._first_check_s, effects)
        return first, effects

    def send_again(self, bookie: BookieId, first: int, count: int, kept_from: int) -> list[Effect]:
        """Send ``bookie`` entries again for which it had no room a while ago. That is no failure: W15 decides.

        Args:
            kept_from: packets below this entry were released, so that the bookie will never get them (W14).
        """
        member, is_open = self._ensemble.live_member(bookie), self._end.state is OPEN
        effects: list[Effect] = []
        if member is not None and (is_open or self._end.waits_for_force):
            known = self.progress.next_entry if is_open else self.progress.last_acknowledged + 1  # R13
            self._shares.send_again(member, first, min(first + count, known), kept_from, effects)
        return effects

    def on_acks(self, bookie: BookieId, first: int, count: int, now: float) -> list[Effect]:
        """``bookie`` has stored its share of ``first .. first + count - 1``."""
        member = self._ensemble.by_bookie.get(bookie)
        if member is None or not member.live:
            return []  # the bookie was replaced (W4) or is not checked yet (W10b)
        end, following = first + count, self.progress.next_entry
        if end > following:
            end = following
        state = self._end.state
        if state is not OPEN and not self._forcing.active:
            if state is CLOSING:  # too late to count; ``on_closed`` asks who has what (W14)
                member.acks.add(first, end)
            return []  # the writer ended (W6)
        if not member.acks.add(first, end):
            return []
        member.progress_at = now
        member.suspected_at = None
        effects = self._confirm(now)
        if self._forcing.active or self._ensemble.holds_up_callers:
            effects += self._proceed_after_ack(now)
        return effects

    def _confirm(self, now: float) -> list[Effect]:
        """Confirm the acknowledged prefix (W1, W2), unless an ensemble change is in flight (W4)."""
        ensemble, progress = self._ensemble, self.progress
        if not progress.pending or ensemble.changing is not None or self._end.state is not OPEN:
            return []
        first = progress.last_acknowledged + 1
        end = ensemble.acknowledged_below(first, progress.next_entry)
        if end == first:
            return []
        progress.acknowledge(end)
        progress.last_add_confirmed = EntryId(self._sync.visible(progress.last_acknowledged, self._forcing.forced))
        effects: list[Effect] = [Confirm(EntryId(first), end - first), self._release_acknowledged()]
        if not progress.pending:
            effects.append(PublishLac(progress.last_add_confirmed, ensemble.live_bookies))
        verdict = ensemble.on_acknowledged(progress.acknowledged_length, progress.last_acknowledged)
        if verdict is not WAIT:
            self._perform(verdict, now, effects)
        return effects

    def _release_acknowledged(self) -> Release:
        """The packets that are never sent again."""
        end = self._sync.releasable(self.progress.last_acknowledged + 1, self._ensemble.members)
        return Release(EntryId(end - 1))

    # -- a bookie fails, or returns ---------------------------------------------------------------------

    def on_bookie_failed(self, bookie: BookieId, error: BookKeeperError, now: float) -> list[Effect]:
        """An add failed on ``bookie``, or the connection to it was lost, also with nothing in flight (W10b).

        A fenced or unauthorised reply ends the handle. After anything else the bookie counts as failed.
        """
        effects: list[Effect] = []
        if self._end.state is OPEN or self._end.waits_for_force:
            self._perform(self._ensemble.on_bookie_failed(bookie, error), now, effects)
        return effects

    def on_fenced(self, now: float) -> list[Effect]:
        """A bookie of the ensemble said that the ledger is fenced (W9)."""
        return self._fail(fenced_error())

    def on_bookie_returned(self, bookie: BookieId, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """``bookie`` answers again. ``metadata`` were read after that, after a sync (W10b)."""
        if self._end.state is not OPEN or bookie not in self._ensemble.failed_bookies:
            return []
        if metadata.state is not LedgerState.OPEN:
            return self._end_of_ledger(metadata)
        effects: list[Effect] = []
        self._perform(self._ensemble.on_bookie_returned(bookie, metadata.last_fragment), now, effects)
        return effects + self._proceed(now)

    def _perform(self, verdict: Verdict, now: float, effects: list[Effect]) -> None:
        """Turn a verdict of the ensemble into effects."""
        end = self._changes.perform(verdict, now, effects)
        if end is not None:
            effects += self._fail_force(end, now) if self._end.waits_for_force else self._fail(end)

    # -- changing the ensemble --------------------------------------------------------------------------

    def on_ensemble_changed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The change that was asked for is committed; ``metadata`` are stored."""
        asked = self._ensemble.end_change()
        state, is_open = self._end.state, metadata.state is LedgerState.OPEN
        effects: list[Effect] = []
        if state is CLOSING:
            if is_open:
                self._changes.seat(metadata.last_fragment, now, effects, send=False)
                self.metadata = metadata
            return effects + self._close_metadata()
        if state is not OPEN or asked is None:
            return []
        if not is_open:
            return self._end_of_ledger(metadata)
        self._changes.on_committed(asked, metadata.last_fragment, now, effects)
        self.metadata = metadata
        return effects + self._proceed(now)

    def on_change_failed(self, reason: ChangeFailure, now: float) -> list[Effect]:
        """The change that was asked for was not made, or the stored metadata say that the ledger has ended."""
        asked = self._ensemble.end_change()
        if self._end.state is CLOSING and asked is not None:
            return self._close_metadata()
        if self._end.state is not OPEN:
            return []
        if (end := ended_while_changing(reason)) is not None:
            return self._fail(end)
        effects: list[Effect] = []
        self._changes.on_not_made(now, effects)
        return effects + self._proceed(now)

    def on_spares_changed(self, now: float) -> list[Effect]:
        """A bookie appeared that may stand in."""
        effects: list[Effect] = []
        if self._end.state is OPEN:
            self._ensemble.on_spares_changed(now)
            self._changes.request(now, effects)
        return effects

    def _proceed(self, now: float) -> list[Effect]:
        """Confirm and force what is possible now that the ensemble has changed."""
        return self._confirm(now) + self._proceed_forcing(now)

    # -- making durable what is only written (W11) ------------------------------------------------------

    def force(self, now: float) -> tuple[int, list[Effect]]:
        """Make durable, on every bookie, what is acknowledged now.

        Returns the number of the force; ``ForceDone`` or ``ForceFailed`` reports its end. Raises: ``error``, which
        ended the handle.
        """
        if self._end.state is not OPEN:
            raise self.error or LedgerClosedError("the ledger is closed")
        number = self._forcing.request(self.progress.last_acknowledged, self.progress.acknowledged_length, now)
        return number, self._proceed_forcing(now)

    def on_forced(self, bookie: BookieId, number: int, now: float) -> list[Effect]:
        """``bookie`` has made durable what it had acknowledged when it was asked (``ForceLedger``)."""
        self._forcing.on_forced(bookie, number)
        return self._proceed_forcing(now)

    def on_force_failed(self, bookie: BookieId, number: int, error: BookKeeperError, now: float) -> list[Effect]:
        """``bookie`` could not. The handle goes on, unless the connection was lost, which is reported by itself.

        One that only had no room is asked again for a close, which cannot be repeated if its force fails.
        """
        if self._end.waits_for_force and isinstance(error, TooManyRequestsError):
            return self._forcing.retry(bookie, number)
        progress = self.progress
        effects = self._forcing.on_failed(number, error, progress.last_acknowledged, progress.acknowledged_length)
        return self._after_force_failed(effects, now)

    def _proceed_forcing(self, now: float) -> list[Effect]:
        forcing, progress = self._forcing, self.progress
        effects = forcing.proceed(self._ensemble.members, progress.last_acknowledged, progress.acknowledged_length)
        visible = self._sync.visible(progress.last_acknowledged, forcing.forced)
        if visible > progress.last_add_confirmed:
            progress.last_add_confirmed = EntryId(visible)
            if self._end.state is OPEN and not progress.pending:
                effects.append(PublishLac(progress.last_add_confirmed, self._ensemble.live_bookies))
        if self._end.waits_for_force and progress.last_add_confirmed == progress.last_acknowledged:
            self._end.waits_for_force = False
            effects += self._close_metadata()
        if forcing.deadline is not None:
            self._alarm.wake_by(forcing.deadline, effects)
        return effects

    def _after_force_failed(self, effects: list[Effect], now: float) -> list[Effect]:
        """A force has failed. If a close waited for it, the close has failed, too."""
        if self._end.waits_for_force and not self._forcing.active:
            failed = [effect.error for effect in effects if isinstance(effect, ForceFailed)][-1]
            self._end.on_force_failed(failed)
            return [*effects, CloseFailed(failed)]
        return effects + self._proceed_forcing(now)

    def _fail_force(self, error: BookKeeperError, now: float) -> list[Effect]:
        return self._after_force_failed(self._forcing.fail(error), now)

    def _proceed_after_ack(self, now: float) -> list[Effect]:
        effects = self._proceed_forcing(now)
        if self._ensemble.has_caught_up():
            effects.append(ResumeCallers())
        return effects

    # -- last add confirmed without an add (W16) --------------------------------------------------------

    def lac_to_publish(self) -> EntryId | None:
        """The last add confirmed to send on its own now; None if the next add will carry it anyway."""
        return self.progress.unpublished_lac if self._end.state is OPEN else None

    def is_final_lac(self, lac: EntryId) -> bool:
        """Whether no entry has been added or confirmed since the explicit last add confirmed ``lac`` was sent."""
        progress = self.progress
        return lac == progress.last_add_confirmed and not progress.pending and self._end.state is OPEN

    def on_lac_published(self, lac: EntryId) -> None:
        """The explicit last add confirmed ``lac`` was sent."""
        self.progress.lac_sent = max(self.progress.lac_sent, lac)

    # -- the end ----------------------------------------------------------------------------------------

    def _end_of_ledger(self, metadata: LedgerMetadata) -> list[Effect]:
        """End the writer, because the stored metadata say that it may not write any more."""
        self.metadata = metadata
        return self._fail(ended_by(metadata))

    def _fail(self, error: BookKeeperError) -> list[Effect]:
        """End for good (W6). The outcome of every pending add is unknown (W7)."""
        if self._end.state is not OPEN:
            return []  # a close that is under way meets the same reason
        self._end.fail(error)
        return self._fail_pending(error) + self._forcing.fail(error)

    def on_broken(self, error: BookKeeperError) -> list[Effect]:
        """The shell cannot continue: accept and confirm nothing any more (W6). A recovery decides the end."""
        return self._fail(error)

    def _fail_pending(self, error: BookKeeperError, *, forces: bool = False) -> list[Effect]:
        """Fail all pending adds. ``forces``: keep the packets that a bookie without room may still need."""
        first, count = self.progress.drop_pending()
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
        state, progress = self._end.state, self.progress
        if state in (CLOSING, WriterState.CLOSED):
            return []
        forces = force and progress.last_acknowledged > progress.last_add_confirmed
        closed = self._end.begin_close(force=forces)
        effects = self._fail_pending(closed, forces=forces) if state is OPEN else []
        if forces:
            self._forcing.request(progress.last_acknowledged, progress.acknowledged_length, now)
            return effects + self._proceed_forcing(now)
        effects += self._forcing.fail(closed)
        return effects if self.is_changing else effects + self._close_metadata()

    def may_close_again(self, error: BaseException | None, *, force: bool) -> bool:
        """May ``close(force=force)`` follow one that ended with ``error``?"""
        return self._end.may_close_again(error, force=force)

    def _close_metadata(self) -> list[Effect]:
        effects: list[Effect] = []
        self._shares.note_missing_of(effects, live=False)
        return [*effects, CloseMetadata(self.progress.last_add_confirmed, self.confirmed_length)]

    @property
    def is_lagging(self) -> bool:
        """Has a live bookie not acknowledged its share of what the ledger is closed with?"""
        return self._shares.is_lagging

    def on_closed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The ledger is closed as asked; ``metadata`` are stored. Bookies that have not acknowledged everything by now
        are noted (W14): nothing that is sent to them is looked at any more."""
        if metadata.last_entry < self.progress.last_add_confirmed:
            check(False, "R11", f"closed at {metadata.last_entry}: {self!r}")
        self.metadata = metadata
        self._end.on_closed()
        effects: list[Effect] = []
        self._shares.note_missing_of(effects, live=True)  # the others were noted when the close began
        return effects

    def on_close_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """The ledger could not be closed: it is fenced or closed with another end, or the store does not answer.

        After a retryable error ``close`` may be called again. The handle accepts no more adds in any case.
        """
        self._end.on_close_failed(error)
        return []

    # -- time -------------------------------------------------------------------------------------------

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: deadlines, hung bookies, retries."""
        self._alarm.on_tick()
        ensemble, forcing, progress = self._ensemble, self._forcing, self.progress
        effects = forcing.on_tick(now, ensemble.members, progress.last_acknowledged, progress.acknowledged_length)
        if effects or forcing.active:
            effects = self._after_force_failed(effects, now)
        if self._end.state is not OPEN:
            return effects
        if progress.deadline is not None and now >= progress.deadline:
            late = not_acknowledged(progress.last_acknowledged + 1, ensemble, self.config.add_timeout_ms)
            return effects + self._fail(late)
        self._perform(ensemble.on_tick(progress.next_entry, now), now, effects)
        if self.error is not None:
            return effects
        if ensemble.retry_at is not None and now >= ensemble.retry_at:
            self._changes.request(now, effects)
        looks_at = now + self._sync.stall_ms / 4000 if ensemble.owes(progress.next_entry) else None
        times = [time for time in (ensemble.retry_at, progress.deadline, looks_at) if time is not None]
        if times:
            self._alarm.wake_by(min(times), effects)
        return effects

    def validate_state(self) -> None:
        """Derive again what must hold between the fields, from acks, members, pending adds and metadata. For tests.

        Raises: InvariantError.
        """
        progress, is_open = self.progress, self._end.state is OPEN
        self._ensemble.validate_state()
        self._forcing.validate_state(progress.last_acknowledged)
        self._end.validate_state(forces=self._forcing.active)
        progress.validate_state(is_open=is_open)
        visible = self._sync.visible(progress.last_acknowledged, self._forcing.forced)
        check(progress.last_add_confirmed == visible, "W11", (visible, self))
        if is_open:
            check_confirms(self.metadata, self._ensemble, progress, self._alarm, self)
