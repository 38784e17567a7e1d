"""The writing half of a ledger, as a machine that touches nothing.

``LedgerWriter`` is told what happened and answers with what to do about it, in runs of consecutive entries. Payloads
stay with the shell: the machine knows their ids and sizes.

    open     -- on_bookie_failed -->  open, a change in flight: adds are sent, confirms are held (W4)
             -- on_ensemble_changed | on_change_failed(no spare, store away) -->  open
    open     -- on_fenced, deadline, on_change_failed(closed, ...) -->  failed, for good (W6)
    open     -- close -->  closing  -- on_closed -->  closed

What concerns the members of the ensemble is in :mod:`bookkeeper.ledger.writer_ensemble`.

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
         (:mod:`bookkeeper.ledger.force_rounds`). There is no ensemble change: a bookie that fails ends the handle, for
         what it acknowledged may be lost. One that lags holds up the callers instead of failing.
    W12  ``must_wait`` bounds what is pending.
    R13  Closing fails what is pending first, and closes only from OPEN; with deferred sync it forces in between.
    W13  Without a spare appends go on; only the deadline of an append ends the handle.
    W15  A bookie that stands still while others progress, or trails too far, counts as failed.
    W16  When the last add confirmed has moved and nothing is pending, it is published by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from bookkeeper.errors import (
    AddTimeoutError,
    BookieFailedError,
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    check,
)
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.force_rounds import ForceRounds
from bookkeeper.ledger.metadata import LedgerMetadata
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
    MoreRoom,
    NoteMissing,
    PublishLac,
    Release,
    SendAdds,
    SendForce,
    WatchIncarnation,
    WriterConfig,
)
from bookkeeper.ledger.writer_ensemble import EnsembleKeeper
from bookkeeper.ledger.writer_parts import PendingAdds, WriterState

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
    "Forced",
    "LedgerWriter",
    "MoreRoom",
    "NoteMissing",
    "PublishLac",
    "Release",
    "SendAdds",
    "SendForce",
    "WakeAt",
    "WatchIncarnation",
    "WriterConfig",
    "WriterState",
]


class LedgerWriter(EnsembleKeeper):
    """Appends to one ledger. ``metadata`` is as it was committed when the ledger was created: OPEN and empty."""

    def __init__(self, metadata: LedgerMetadata, config: WriterConfig | None = None) -> None:
        super().__init__(metadata, config or WriterConfig())
        self.pending_bytes = 0
        """Payload bytes appended and not acknowledged (W12)."""
        self.error: BookKeeperError | None = None
        """Why nothing can be appended any more; None while something can."""
        self._pending: deque[PendingAdds] = deque()
        self._lac_told: EntryId = NO_ENTRY
        self._forcing = ForceRounds(self.config.force_timeout_ms)
        self._may_close = True

    def __repr__(self) -> str:
        members = " ".join(f"{s.bookie}{'' if s.live else '!'}{s.acks}" for s in self._members)
        held = ", changing" if self._change else ""
        return f"<{self.state.value}{held}, lac={self.last_add_confirmed}, next={self.next_entry}, {members}>"

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
            or self.next_entry - self.last_acknowledged - 1 >= self.config.pending_entries_max
            or self._held_up
        )

    @property
    def may_close(self) -> bool:
        """May ``close`` be called, again or after what ended the handle?"""
        return self._may_close

    def add(self, sizes: Sequence[int], now: float) -> tuple[EntryId, list[Effect]]:
        """Append a run of payloads of these sizes in bytes; ``sizes`` must not be changed afterwards.

        Returns the first id. Raises what ended the handle (``error``).
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
        self._lac_told = max(self._lac_told, lac)
        for member in self._members:
            if member.live:
                if member.acks.mark >= first:
                    member.progress_at = now
                self._send(member, first, effects)
        self._wake_by(min(run.deadline, now + self._slow_bookies.stall_ms / 1000), effects)
        return first, effects

    def on_acks(self, bookie: BookieId, first: int, count: int, now: float) -> list[Effect]:
        """``bookie`` has stored every entry of ``first .. first + count - 1`` that it holds."""
        member = self._by_bookie.get(bookie)
        if (self.state is not WriterState.OPEN and not self._forcing.active) or member is None or not member.live:
            return []  # too late (W6), replaced (W4), or its life is in doubt (W10b)
        if not member.acks.add(first, min(first + count, self.next_entry)):
            return []
        member.progress_at = now
        member.suspected_at = None
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

    def _confirm(self, now: float) -> list[Effect]:
        """Release the acknowledged prefix (W1, W2), unless the line is held (W4)."""
        if not self._pending or self._change is not None or self.state is not WriterState.OPEN:
            return []
        first = end = self.last_acknowledged + 1
        while end < self.next_entry:
            reached = self.spec.acknowledged_below(end, [member.acks.end_from(end) for member in self._members])
            if reached <= end:
                break
            end = min(reached, self.next_entry)
        if end == first:
            return []
        self._drop_pending(end)
        self._changes_here = 0
        self.last_acknowledged = EntryId(end - 1)
        if not self._deferred:
            self.last_add_confirmed = self.last_acknowledged
        effects: list[Effect] = [Confirm(EntryId(first), end - first), self._release_acknowledged()]
        if not self._pending:
            effects.append(PublishLac(self.last_add_confirmed, self._lac_readers()))
        if self.acknowledged_length >= self._slow_bookies.next_step:
            self._fail_those_who_trail(now, effects)
        return effects

    def _release_acknowledged(self) -> Release:
        """What was acknowledged is not sent again; with deferred sync, what everybody has acknowledged: what one bookie
        has refused it must still get, or nothing could ever be forced (W11)."""
        end = self.last_acknowledged + 1
        return Release(
            EntryId((min(end, *(member.acks.mark for member in self._members)) if self._deferred else end) - 1)
        )

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
        effects = forcing.proceed(self._members, self.last_acknowledged, self.acknowledged_length)
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

    def _fail_force(self, error: BookKeeperError, now: float) -> list[Effect]:
        return self._after_force_failed(self._forcing.fail(error), now)

    def _go_on(self, now: float) -> list[Effect]:
        return self._confirm(now) + self._go_on_forcing(now)

    def _go_on_after_ack(self, now: float) -> list[Effect]:
        effects = self._go_on_forcing(now)
        if self._held_up and not self._slow_bookies.trailing(self._members):
            self._held_up = False
            effects.append(MoreRoom())
        return effects

    # -- last add confirmed without an add (W16) --------------------------------------------------------

    def lac_to_publish(self) -> EntryId | None:
        """What an explicit last add confirmed should carry now; None if the next add will carry it anyway."""
        news = self.last_add_confirmed > self._lac_told
        return self.last_add_confirmed if news and not self._pending and self.state is WriterState.OPEN else None

    def on_lac_published(self, lac: EntryId) -> None:
        """It was sent."""
        self._lac_told = max(self._lac_told, lac)

    # -- the fence -------------------------------------------------------------------------------------

    def on_fenced(self, now: float) -> list[Effect]:
        """Some bookie of the ensemble said that the ledger is fenced (W9)."""
        return self._fail(LedgerFencedError("another client recovers this ledger"))

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

    def _fail_pending(self, error: BookKeeperError, *, forces: bool = False) -> list[Effect]:
        """``forces``: what is acknowledged may still have to be sent again, to whom had no room for it."""
        first, count = EntryId(self.last_acknowledged + 1), self.pending_entries
        self._pending.clear()
        self.pending_bytes = 0
        if not count:
            return []
        release = self._release_acknowledged() if forces else Release(EntryId(first + count - 1))
        return [FailAdds(first, count, error), release]

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
        forces = force and unforced
        effects = self._fail_pending(self.error, forces=forces) if self.state is WriterState.OPEN else []
        self.state = WriterState.CLOSING
        if forces:
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
        for member in self._members:
            if not member.live:
                self._note_missing(member, effects)
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

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: deadlines, hung bookies, retries."""
        self._wake_at = None
        effects = self._forcing.on_tick(now, self._members, self.last_acknowledged, self.acknowledged_length)
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
        times = [self._retry_at] if self._retry_at is not None else []
        if self._pending:
            times.append(self._pending[0].deadline)
        if any(member.live and member.acks.mark < self.next_entry for member in self._members):
            times.append(now + self._slow_bookies.stall_ms / 4000)
        if times:
            self._wake_by(min(times), effects)
        return effects

    def _timeout_error(self) -> AddTimeoutError:
        error = AddTimeoutError(
            f"entry {self.last_acknowledged + 1} found no ack quorum of {self.spec.ack_quorum} within "
            f"{self.config.add_timeout_ms} ms; failed bookies: {self._why_failed()}"
            + ("; an ensemble change was in flight" if self._change else "")
        )
        error.__cause__ = self._last_failure
        return error
