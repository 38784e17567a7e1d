"""The ensemble of a writer: which bookies are in it, which of them failed or lag, and what to do about that.

:class:`WriterEnsemble` is told what happened to a bookie and answers with a *verdict*. It sends nothing: the writer
turns the verdict into effects.

    Wait          do nothing now
    WatchAgain    watch until this bookie answers again
    Replace       these bookies failed: watch them and ask for an ensemble change
    Readmit       use this bookie again
    EndWriter     end the writer with this error

A member is *live* or *failed*. Nothing is sent to a failed member, and its replies do not count. What it acknowledged
before still counts while it stays in the ensemble. It leaves when a stand-in is found. It becomes live again, from the
first unconfirmed entry on, after its incarnation was checked (W10b).

Rules
    W4   One ensemble change is in flight at a time; the acks of a bookie that was replaced are dropped.
    W5   The new fragment begins at last add confirmed + 1.
    W9   A fenced reply ends the writer and never changes the ensemble.
    W10b A bookie whose connection was lost counts again only after the ledger was seen OPEN with it in the last
         fragment.
    W11  With deferred sync the ensemble never changes (:mod:`bookkeeper.ledger.ensemble.sync_policy`).
    W13  Without a spare the members stay as they are; the change is tried again later.
    W14  ``missing`` says what a member missed.
    W15  A bookie that stands still while others progress, or trails too far, counts as failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import (
    BookKeeperError,
    LedgerFencedError,
    RequestTimedOutError,
    UnauthorizedError,
    check,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.config import WriterConfig
from bookkeeper.ledger.ensemble.acks import Acks
from bookkeeper.ledger.ensemble.member import EnsembleMember
from bookkeeper.ledger.ensemble.slow_bookies import SlowBookies
from bookkeeper.ledger.ensemble.sync_policy import SyncPolicy
from bookkeeper.ledger.metadata import Fragment
from bookkeeper.ledger.quorum import QuorumSpec

_CHANGES_AT_ONCE: Final = 3
"""How many ensemble changes may follow each other without a confirmed entry in between. Then there is a pause. Without
it stand-ins that fail at once would be tried in turn, as fast as the store can write."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing now."""


@dataclass(frozen=True, slots=True)
class WatchAgain:
    """Watch until ``bookie`` answers again."""

    bookie: BookieId


@dataclass(frozen=True, slots=True)
class Replace:
    """Watch ``bookies``, which failed, and ask for an ensemble change."""

    bookies: tuple[BookieId, ...]


@dataclass(frozen=True, slots=True)
class Readmit:
    """Use ``member`` again, from the first unconfirmed entry on."""

    member: EnsembleMember


@dataclass(frozen=True, slots=True)
class EndWriter:
    """End the writer with ``error``."""

    error: BookKeeperError


Verdict = Wait | WatchAgain | Replace | Readmit | EndWriter

WAIT: Final = Wait()


def fenced_error() -> LedgerFencedError:
    """The error with which a writer ends when another client has fenced its ledger."""
    return LedgerFencedError("another client recovers this ledger")


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """An ensemble change to ask for: ``failed`` get stand-ins, and the members ``keep`` stay in their places."""

    failed: tuple[BookieId, ...]
    keep: tuple[BookieId, ...]
    attempt: int
    """Counts this writer's changes from 1."""


class WriterEnsemble:
    """The members of the last fragment of one writer's ledger. ``bookies``: as committed when it was created."""

    def __init__(self, spec: QuorumSpec, bookies: Sequence[BookieId], config: WriterConfig, sync: SyncPolicy) -> None:
        self.spec = spec
        self.members = self._members_of(bookies, 0, 0.0)
        """The members by position. Only this class changes them, except for ``acks`` and ``progress_at``: acks come by
        the thousand, so the writer counts them in the member itself."""
        self.by_bookie = {member.bookie: member for member in self.members}
        self.changing: tuple[BookieId, ...] | None = None
        """The bookies that the change in flight replaces (W4); None if no change is in flight."""
        self.retry_at: float | None = None
        """When to ask for the next change, if bookies failed and no change is in flight."""
        self.holds_up_callers = False
        """Whether callers wait for a bookie that trails (W11)."""
        self.slow = SlowBookies(sync.stall_ms, config.trail_bytes_max)
        self.last_failure: BookKeeperError | None = None
        """The error of the member that failed last."""
        self._sync = sync
        self._config = config
        self._attempts = 0
        self._changes_unconfirmed = 0
        """Committed changes since the last confirm."""
        self._no_change_before = 0.0

    def _members_of(self, bookies: Sequence[BookieId], start: int, now: float) -> list[EnsembleMember]:
        return [EnsembleMember(b, p, Acks(self.spec, p, start), now) for p, b in enumerate(bookies)]

    def __repr__(self) -> str:
        return " ".join(f"{m.bookie}{'' if m.live else '!'}{m.acks}" for m in self.members)

    # -- what it knows ----------------------------------------------------------------------------------

    @property
    def live_bookies(self) -> tuple[BookieId, ...]:
        """The members to which adds are sent."""
        return tuple([member.bookie for member in self.members if member.live])  # after each lone add; so it is cheaper

    @property
    def failed_bookies(self) -> tuple[BookieId, ...]:
        """The members to which nothing is sent now."""
        return tuple(member.bookie for member in self.members if not member.live)

    @property
    def failures(self) -> str:
        """The failed members with the reason of each, for people."""
        failed = [member for member in self.members if not member.live]
        return ", ".join(f"{member.bookie} ({member.failure or 'no reason is known'})" for member in failed) or "none"

    def live_member(self, bookie: BookieId) -> EnsembleMember | None:
        """The member of this name, if it is one and is live."""
        member = self.by_bookie.get(bookie)
        return member if member is not None and member.live else None

    def owes(self, next_entry: int) -> bool:
        """Whether a live member has not acknowledged everything below ``next_entry``."""
        return any(member.live and member.acks.mark < next_entry for member in self.members)

    def acknowledged_below(self, first: int, end: int) -> int:
        """The lowest id from ``first`` on that no ack quorum has acknowledged, by the acks that count now; ``end`` if
        everything below it is acknowledged."""
        while first < end:
            reached = self.spec.acknowledged_below(first, [member.acks.end_from(first) for member in self.members])
            if reached <= first:
                break
            first = min(reached, end)
        return first

    def missing(self, member: EnsembleMember, first: int, last: int) -> list[tuple[EntryId, EntryId]]:
        """What a member did not acknowledge of ``first .. last``, as inclusive runs in which it has a share (W14)."""
        return [
            (EntryId(low), EntryId(high))
            for low, high in member.acks.missing(first, last)
            if self.spec.stripe_size(member.position, low, high - low + 1)
        ]

    # -- a bookie fails, returns, or lags ---------------------------------------------------------------

    def on_bookie_failed(self, bookie: BookieId, error: BookKeeperError) -> Verdict:
        """An add failed on ``bookie``, or the connection to it was lost.

        The verdict is EndWriter if the ledger is fenced (W9), if the password is wrong, and after any failure with
        deferred sync (W11). Otherwise the bookie failed and is replaced.
        """
        member = self.by_bookie.get(bookie)
        if member is None:
            return WAIT
        if isinstance(error, LedgerFencedError):
            return EndWriter(fenced_error())
        if isinstance(error, UnauthorizedError):
            return EndWriter(error)
        if (end := self._sync.end_after_loss(bookie, error)) is not None:
            return EndWriter(end)
        if member.live:
            self._drop(member, error)
            return Replace((bookie,))
        self.last_failure = member.failure = error
        if member.returned:  # it came back, and was lost again while a change was in flight
            member.returned = False
            return WatchAgain(bookie)
        return WAIT

    def _drop(self, member: EnsembleMember, error: BookKeeperError) -> None:
        self.last_failure = member.failure = error
        member.live = False
        member.suspected_at = None

    def on_bookie_returned(self, bookie: BookieId, stored: Fragment) -> Verdict:
        """``bookie`` answers again; ``stored`` is the last fragment, read after that and after a sync (W10b)."""
        member = self.by_bookie.get(bookie)
        if member is None or member.live:
            return WAIT
        if bookie not in stored.ensemble:
            return WAIT if self.changing is not None else WatchAgain(bookie)
        if self.changing is not None:
            member.returned = True  # it is used again after the change, unless the change replaces it
            return WAIT
        return Readmit(member)

    def readmit(self, member: EnsembleMember, start: int, now: float) -> None:
        """``member`` is live again and has acknowledged nothing from ``start`` on."""
        member.acks = Acks(self.spec, member.position, start)
        member.live, member.returned, member.progress_at = True, False, now

    def on_tick(self, next_entry: int, now: float) -> Verdict:
        """Replace live members that make no progress while another one does (W15)."""
        stalled = self.slow.hanging(self.members, next_entry, now, held_up=self.holds_up_callers)
        for member in stalled:
            error = RequestTimedOutError(f"{member.bookie} acknowledged nothing for {self.slow.stall_ms} ms")
            if (end := self._sync.end_after_loss(member.bookie, error)) is not None:
                return EndWriter(end)
            self._drop(member, error)
        return Replace(tuple(member.bookie for member in stalled)) if stalled else WAIT

    def on_acknowledged(self, length: int, last: int) -> Verdict:
        """``length`` payload bytes, up to entry ``last``, are acknowledged: replace those that trail too far (W15)."""
        self._changes_unconfirmed = 0
        if length < self.slow.next_step:
            return WAIT
        self.slow.step(length, last)
        trailing = self.slow.trailing(self.members)
        if self._sync.waits_for_trailing:
            self.holds_up_callers = bool(trailing)
            return WAIT
        for member in trailing:
            bytes_max = self._config.trail_bytes_max
            self._drop(member, RequestTimedOutError(f"{member.bookie} is {bytes_max} bytes behind"))
        return Replace(tuple(member.bookie for member in trailing)) if trailing else WAIT

    def has_caught_up(self) -> bool:
        """Whether the bookies for which callers wait have caught up. True only once."""
        if not self.holds_up_callers or self.slow.trailing(self.members):
            return False
        self.holds_up_callers = False
        return True

    # -- changing the ensemble --------------------------------------------------------------------------

    def plan_change(self, now: float) -> PlannedChange | None:
        """Begin a change that replaces all failed members, one change at a time (W4).

        None: no member failed, a change is in flight, or it is too early; in that case ``retry_at`` says when to ask.
        """
        failed = self.failed_bookies
        self.retry_at = None
        if self.changing is not None or not failed:
            return None
        if now < self._no_change_before:
            self.retry_at = self._no_change_before
            return None
        self._attempts += 1
        self.changing = failed
        return PlannedChange(failed, self.live_bookies, self._attempts)

    def end_change(self) -> tuple[BookieId, ...] | None:
        """End the change in flight. Returns the bookies that it was to replace; None if there was no change."""
        failed, self.changing = self.changing, None
        return failed

    def seat(self, fragment: Fragment, start: int, now: float) -> list[tuple[EnsembleMember, EnsembleMember]]:
        """Take the members from the committed last fragment; ``start`` is the first unconfirmed entry (W5).

        A member that stays keeps its place and its acks. Returns (old member, new member) for each other place.
        """
        stays = fragment.ensemble == tuple(member.bookie for member in self.members)
        fits = fragment.first_entry == start or (stays and fragment.first_entry < start)
        check(fits, "W5", f"fragment {fragment} is committed, the first unconfirmed entry is {start}")
        members = self._members_of(fragment.ensemble, start, now)
        taken_over = []
        for position, (old, new) in enumerate(zip(self.members, members, strict=True)):
            if old.bookie == new.bookie:
                members[position] = old
            else:
                taken_over.append((old, new))
        self.members = members
        self.by_bookie = {member.bookie: member for member in members}
        self._changes_unconfirmed += 1
        if self._changes_unconfirmed >= _CHANGES_AT_ONCE:
            self._no_change_before = now + self._config.change_retry_ms / 1000
        return taken_over

    def returned(self) -> list[EnsembleMember]:
        """The members that came back while a change was in flight, and are used again after it."""
        return [member for member in self.members if member.returned]

    def retry_later(self, now: float) -> float:
        """Some members stay failed. Returns when to ask for the next change (W13)."""
        self.retry_at = now + self._config.change_retry_ms / 1000
        return self.retry_at

    def on_spares_changed(self, now: float) -> None:
        """A bookie appeared that may stand in, so that the next change needs no pause."""
        self._no_change_before = now

    # -- for tests --------------------------------------------------------------------------------------

    def validate_state(self) -> None:
        """Derive again what must hold between the fields. For tests.

        Raises: InvariantError.
        """
        members = self.members
        check([m.position for m in members] == list(range(self.spec.ensemble_size)), "W4", "positions")
        check(self.by_bookie == {m.bookie: m for m in members}, "W4", "members by name are not the members")
        for member in members:
            check(not (member.live and member.returned), "W10b", member.bookie)
            check(member.live or member.failure is not None, "W10b", member.bookie)
            check(member.live or member.suspected_at is None, "W15", member.bookie)
            member.acks.validate_state()
        if self.changing is not None:
            check(set(self.changing) <= set(self.failed_bookies), "W4", (self.changing, self))
            check(self.retry_at is None, "W4", "a change is in flight and another one is due")
        check(self._sync.waits_for_trailing or not self.holds_up_callers, "W11", "callers wait without deferred sync")
        if self._sync.waits_for_trailing:
            check(self._attempts == 0 and not self.failed_bookies, "W11", self)
