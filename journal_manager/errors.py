"""Every failure this package raises on purpose.

* :exc:`JournalError`
    * :exc:`JournalFencedError` -- another writer has the journal now (outcome unknown; never retried)
    * :exc:`JournalFailedError` -- an edit log failed and takes nothing more (outcome unknown)
    * :exc:`JournalUnavailableError` -- the journal's store cannot be reached now (retryable, outcome unknown)
        * :exc:`JournalLockedError` -- another process is in the middle of a step on the same journal
        * :exc:`JournalDiskError` -- a disk failed; only a new writer, which recovers, may go on
    * :exc:`JournalCorruptionError` -- edits that must exist are missing or have changed
        * :exc:`JournalGapError` -- transaction ids are missing
        * :exc:`OpFormatError`, :exc:`OpChecksumError` -- bytes that are not an edit
    * :exc:`EditsDiscardedError` -- edits that the caller has were discarded: begin with the newest snapshot
    * :exc:`JournalNotFormattedError`, :exc:`JournalExistsError`, :exc:`NamespaceMismatchError`
    * :exc:`UnsupportedLayoutError` -- written by a newer program
    * :exc:`SegmentExistsError`, :exc:`SegmentNotFoundError`, :exc:`SegmentMismatchError`
    * :exc:`OpTooLargeError`, :exc:`JournalOverloadedError` (retryable)
    * :exc:`JournalFullError` -- the list of the journal's segments, or of its snapshots, is full: purge
    * :exc:`RequestForgottenError` -- a repeated request is too old to tell whether it was carried out
    * :exc:`NotEnoughJournalsError` -- too few members of a journal set work
    * :exc:`NotActiveError` -- this replica is not the active one (retryable: ask the active one)
    * :exc:`ElectionLostError` -- another replica was elected meanwhile (retryable)
    * :exc:`ReplicaFailedError` -- the program's state machine broke its contract, and the replica takes no more part
    * :exc:`JournalClosedError`
    * :exc:`SnapshotNotFoundError`, :exc:`SnapshotAheadError`
    * :exc:`UnknownSchemeError`, :exc:`JournalConfigError`, :exc:`UnsupportedCapabilityError`,
      :exc:`UpgradeError`
    * :exc:`JournalInvariantError` -- a numbered rule does not hold
"""

from __future__ import annotations

from typing import ClassVar, Final

from bookkeeper.outcome import Outcome, check_raising
from journal_manager.fencing_token import FencingToken
from journal_manager.txid import TxId


class JournalError(Exception):
    """The base class of every error that this package raises on purpose."""

    retryable: ClassVar[bool] = False
    """Whether the same call may succeed later without any change."""

    outcome: ClassVar[Outcome] = Outcome.REJECTED
    """Whether the call had an effect; where that is unknown, only a later read by a recovered writer can tell."""


class JournalFencedError(JournalError):
    """Another writer has claimed the journal: this one must stop, for good.

    Edits that were not acknowledged may still be in the journal, if the new writer's recovery found them.
    """

    outcome = Outcome.UNKNOWN

    def __init__(self, message: str, *, epoch: int, by: FencingToken | None = None) -> None:
        super().__init__(message)
        self.epoch = epoch
        """The epoch that lost the journal."""
        self.by = by
        """The epoch and owner that have the journal now, as far as they are known."""


class JournalFailedError(JournalError):
    """The edit log has failed (``__cause__``) and takes nothing more. The outcome of pending edits is unknown."""

    outcome = Outcome.UNKNOWN


class JournalUnavailableError(JournalError):
    """The journal's store cannot be reached now."""

    retryable = True
    outcome = Outcome.UNKNOWN


class JournalLockedError(JournalUnavailableError):
    """Another process is in the middle of a step (claim, start, finalize, purge) on the same journal."""

    outcome = Outcome.REJECTED


class JournalDiskError(JournalUnavailableError):
    """A file or its disk failed. What the failed step has written is unknown, so an edit log does not repeat it."""


class JournalCorruptionError(JournalError):
    """Edits that must exist do not, or have changed. A failure of transport never raises it."""

    def __init__(self, message: str, *, first_missing: TxId | None = None, location: str | None = None) -> None:
        super().__init__(message)
        self.first_missing = first_missing
        self.location = location


class JournalGapError(JournalCorruptionError):
    """The edit ``wanted`` is in no segment, although later edits, or a purge, show that it was written."""

    def __init__(self, message: str, *, wanted: TxId, next_available: TxId | None) -> None:
        super().__init__(message, first_missing=wanted)
        self.wanted = wanted
        self.next_available = next_available


class EditsDiscardedError(JournalError):
    """Edits that the caller has read were discarded, and others may have got their ids: a state that holds them is
    none of this journal any more. Begin anew, with the newest snapshot."""

    def __init__(self, message: str, *, txid: TxId, epoch: int) -> None:
        super().__init__(message)
        self.txid, self.epoch = txid, epoch
        """The last edit that the caller has, and its epoch."""


class OpFormatError(JournalCorruptionError):
    """The bytes are not an edit: they are cut short, have an impossible length, or are out of order."""


class OpChecksumError(OpFormatError):
    """An edit whose checksum does not match."""


class JournalNotFormattedError(JournalError):
    """There is no journal at this address."""


class JournalExistsError(JournalError):
    """There is a journal at this address already, with edits in it."""


class NamespaceMismatchError(JournalError):
    """The journal belongs to another namespace."""


class UnsupportedLayoutError(JournalError):
    """The journal was written by a newer program than this one."""


class SegmentExistsError(JournalError):
    """The transaction id was used before, or a segment is open already."""


class SegmentNotFoundError(JournalError):
    """There is no such segment, or it does not exist any more."""


class SegmentMismatchError(JournalError):
    """The given ends are not those of the segment."""


class OpTooLargeError(JournalError):
    """An edit, or a group of edits that must be durable together, does not fit into one batch."""


class JournalOverloadedError(JournalError):
    """More bytes wait to become durable than the edit log allows; wait with ``EditLog.room()``."""

    retryable = True


class JournalFullError(JournalError):
    """The journal lists as many segments, or snapshots, as its store can hold: no other is begun, or kept, before some
    were removed."""


class RequestForgottenError(JournalError):
    """A request with this id may have been carried out, so long ago that its answer is not remembered any more."""

    outcome = Outcome.UNKNOWN


class NotEnoughJournalsError(JournalError):
    """Too few members of a journal set work."""

    outcome = Outcome.UNKNOWN


class NotActiveError(JournalError):
    """This replica is not, or not certainly, the active one. Nothing was done."""

    retryable = True

    def __init__(self, message: str, *, active: str | None = None) -> None:
        super().__init__(message)
        self.active = active
        """The name of the replica that was last seen as the active one; None if none is known."""


class ElectionLostError(JournalError):
    """Another replica was elected meanwhile."""

    retryable = True


class ReplicaFailedError(JournalError):
    """The state machine of this replica raised where it must not: its state cannot be trusted any more."""


class JournalClosedError(JournalError):
    """The object was used after it was closed."""


class SnapshotNotFoundError(JournalError):
    """There is no snapshot at this transaction id."""


class SnapshotAheadError(JournalError):
    """A snapshot of edits that are not durable: they may be lost, and other edits may get their ids."""


class UnknownSchemeError(JournalError):
    """No backend is installed for this scheme."""


class JournalConfigError(JournalError):
    """An address, option or value cannot be used."""


class UnsupportedCapabilityError(JournalError):
    """This backend cannot do what was asked. Nothing was changed."""


class UpgradeError(JournalError):
    """The upgrade cannot begin, or cannot be rolled back, now. Nothing was changed."""


class JournalInvariantError(JournalError):
    """A rule of docs/rules.md does not hold, so this component must stop. The cause is a bug or damaged memory."""


check: Final = check_raising(JournalInvariantError)
"""Stop if a rule that guards data does not hold. Raises JournalInvariantError, which names the rule."""
