"""Every failure this package raises on purpose.

Callers branch on the class; retry loops read ``retryable`` and ``outcome``; nobody reads a message.

* :exc:`StreamError`
    * :exc:`StreamNotFoundError`, :exc:`StreamExistsError`, :exc:`StreamNameError`, :exc:`StreamConfigError`
    * :exc:`OwnershipLostError` -- another writer has the stream now; never retried with the same writer
    * :exc:`StreamSealedError` -- the stream has ended
    * :exc:`AppendOutcomeUnknownError` -- the records may be in the stream (outcome unknown)
    * :exc:`ProducerFencedError`, :exc:`SequenceGapError`, :exc:`SequenceTooOldError`
    * :exc:`TxidOrderError`, :exc:`TailMovedError`, :exc:`RecordTooLargeError`
    * :exc:`StreamOverloadedError`, :exc:`StreamNotReadyError` (retryable)
        * :exc:`SegmentEmptyError` -- there is nothing to roll (not retryable)
    * :exc:`StreamUnavailableError` -- bookies or metadata cannot be reached now (retryable, outcome unknown)
        * :exc:`StreamMetadataError` -- the metadata store cannot be reached now
    * :exc:`PositionTruncatedError`, :exc:`StreamGapError`, :exc:`ReaderIdleError` (retryable)
    * :exc:`StreamCorruptError` -- bytes are not what was written
        * :exc:`EntryCorruptError`, :exc:`ChainCorruptError`
    * :exc:`UnsupportedStreamFormatError` -- written by a newer program
    * :exc:`CursorNotFoundError`, :exc:`CursorExistsError`, :exc:`CursorConflictError`
    * :exc:`CursorVersionError`, :exc:`CursorFullError`, :exc:`TooManyCursorsError`, :exc:`TooManyStreamsError`
    * :exc:`HoldNotFoundError`, :exc:`HoldExistsError`
    * :exc:`StreamOwnedError` -- a writer has the stream open
    * :exc:`BatchRefusedError` -- a batch cannot be published
    * :exc:`StreamHeldError` -- a hold keeps what was to be removed
    * :exc:`PositionFormatError`, :exc:`SeekFormatError` -- text or bytes that name no position
    * :exc:`ChainStepError` -- a step that the stream's node does not allow now
    * :exc:`StreamClosedError`
    * :exc:`GatewayRedirectError` -- another gateway owns the stream (retryable there)
    * :exc:`GatewayTooOldError` -- the gateway is of an older version, which has no such call
    * :exc:`StreamAccessError` -- the caller may not do this
    * :exc:`MissingLibraryError` -- an optional package is not installed
    * :exc:`StreamInvariantError` -- a numbered rule does not hold
"""

from __future__ import annotations

from typing import ClassVar, Final

from bookkeeper.outcome import Outcome, check_raising
from segments.position import Position


class StreamError(Exception):
    """The base class of every error that this package raises on purpose."""

    retryable: ClassVar[bool] = False
    """The same call may succeed later without anyone changing anything."""

    outcome: Outcome = Outcome.REJECTED
    """Usually as the class says. An append that was sent gets UNKNOWN, whatever error ended its writer."""

    def __init__(
        self,
        message: str,
        *,
        stream: str | None = None,
        position: Position | None = None,
        owner: str | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        super().__init__(message)
        self.stream = stream
        """The name of the stream, where it is known."""
        self.position = position
        """The position that the error is about, if it is about one."""
        self.owner = owner
        """Who has the stream now, where that matters and is known."""
        if outcome is not None:
            self.outcome = outcome


# -- the stream itself -----------------------------------------------------------------------------------


class StreamNotFoundError(StreamError):
    """There is no stream of this name, or it was deleted."""


class StreamExistsError(StreamError):
    """There is a stream of this name already."""


class StreamNameError(StreamError):
    """A stream, cursor, hold or producer cannot have this name."""


class StreamConfigError(StreamError):
    """An option is unknown, or cannot have this value."""


class StreamSealedError(StreamError):
    """The stream was sealed: nothing can be appended to it any more."""


class StreamClosedError(StreamError):
    """The object was used after it was closed."""


class UnsupportedStreamFormatError(StreamError):
    """The stream was written by a newer program than this one. Nothing was changed."""


# -- appending -------------------------------------------------------------------------------------------


class OwnershipLostError(StreamError):
    """Another writer has claimed the stream: this one must stop, for good.

    Records that were not acknowledged may still be in the stream, if the new writer's recovery found them; then the
    outcome says so.
    """


class AppendOutcomeUnknownError(StreamError):
    """The records may or may not be in the stream. An idempotent producer appends them again, or asks."""

    outcome = Outcome.UNKNOWN


class ProducerFencedError(StreamError):
    """The producer of this name was opened again elsewhere, with a higher epoch."""

    def __init__(self, message: str, *, epoch: int = 0, stream: str | None = None) -> None:
        super().__init__(message, stream=stream)
        self.epoch = epoch
        """The epoch that the name has now."""


class SequenceGapError(StreamError):
    """A strict producer skipped a sequence number: a record before this one is missing."""

    def __init__(self, message: str, *, expected: int = 0, stream: str | None = None) -> None:
        super().__init__(message, stream=stream)
        self.expected = expected
        """The sequence number that comes next."""


class SequenceTooOldError(StreamError):
    """This sequence number is so old that nobody remembers where its record stands, or whether there is one. Where the
    record was there for certain, ``outcome`` says so. Nothing was appended by this call."""

    outcome = Outcome.UNKNOWN


class TxidOrderError(StreamError):
    """The transaction id is lower than that of the record before."""

    def __init__(self, message: str, *, last: int | None = None, stream: str | None = None) -> None:
        super().__init__(message, stream=stream)
        self.last = last
        """The last transaction id of the stream."""


class TailMovedError(StreamError):
    """Something was appended since: the stream's end is not where the caller thought. ``position`` is the end."""


class RecordTooLargeError(StreamError):
    """A record, or a batch that must be in one entry, is larger than the stream allows."""


class StreamOverloadedError(StreamError):
    """More bytes wait to become durable than the writer allows, or somebody appends faster than his quota."""

    retryable = True
    after_s: float | None = None
    """Seconds after which it may be tried again, where that is known."""


class StreamNotReadyError(StreamError):
    """The stream is being taken over, or its writer starts a new segment; try again soon."""

    retryable = True


class SegmentEmptyError(StreamNotReadyError):
    """The open segment has no records, so that there is nothing to roll. Only an append changes that."""

    retryable = False


class StreamUnavailableError(StreamError):
    """Bookies or metadata cannot be reached now."""

    retryable = True
    outcome = Outcome.UNKNOWN


class StreamMetadataError(StreamUnavailableError):
    """The metadata store cannot be reached now."""


# -- reading ---------------------------------------------------------------------------------------------


class PositionTruncatedError(StreamError):
    """The position is before the stream's beginning. ``position`` is the first one that can be read."""


class StreamGapError(StreamError):
    """Records that must be there cannot be read; the reader was asked to raise. ``position`` is the first of them."""


class ReaderIdleError(StreamError):
    """Nothing came for longer than the reader was told to wait, although the writer should have written."""

    retryable = True


class StreamCorruptError(StreamError):
    """Bytes are not what was written. A failure of transport never raises it."""


class EntryCorruptError(StreamCorruptError):
    """An entry of a ledger is no entry of a stream, or its checksum does not match."""


class ChainCorruptError(StreamCorruptError):
    """The stream's node is damaged, or breaks one of its own rules."""


# -- cursors, holds, gateways ----------------------------------------------------------------------------


class CursorNotFoundError(StreamError):
    """The stream has no cursor of this name."""


class CursorExistsError(StreamError):
    """The stream has a cursor of this name already."""


class CursorConflictError(StreamError):
    """Someone else moved the cursor, or another owner has it."""


class CursorVersionError(StreamError):
    """The cursor's history does not have this version, or has it no more."""


class CursorFullError(StreamError):
    """The cursor would remember more than it may: too many separate ranges of acknowledged records, or too large
    properties. Nothing was forgotten; acknowledge the records in between first."""


class TooManyCursorsError(StreamError):
    """The stream has as many cursors as it may have, or the name for which one was to be made has. None was made:
    delete some first."""


class TooManyStreamsError(StreamError):
    """The tenant who would own the stream has as many as his quota allows. None was made, imported or renamed."""


class HoldNotFoundError(StreamError):
    """The stream has no hold of this name."""


class HoldExistsError(StreamError):
    """The stream has a hold of this name already."""


class PositionFormatError(StreamError, ValueError):
    """Text or bytes that are no position."""


class SeekFormatError(StreamError, ValueError):
    """Text that names no position in a stream."""


class ChainStepError(StreamError):
    """The stream's node does not allow this step now. Nothing was changed."""


class StreamHeldError(StreamError):
    """A hold keeps what was to be truncated or deleted. ``position`` is how far a truncation may go."""


class StreamOwnedError(StreamError):
    """A writer has the stream open, which publishing a batch would end."""


class BatchRefusedError(StreamError):
    """A batch cannot be published, and nothing of it was."""


class GatewayRedirectError(StreamError):
    """Another gateway owns the stream. ``owner`` is its address."""

    retryable = True


class GatewayTooOldError(StreamError):
    """The gateway is of an older version, which has no such call."""


class StreamAccessError(StreamError):
    """The caller is not allowed to do this with the stream."""


class MissingLibraryError(StreamError):
    """An optional package is needed and not installed."""


class StreamInvariantError(StreamError):
    """A rule of docs/rules.md does not hold, so this component must stop. The cause is a bug or damaged memory."""


check: Final = check_raising(StreamInvariantError)
"""Stop if a rule that guards data does not hold. Raises StreamInvariantError, which names the rule."""
