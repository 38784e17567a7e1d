"""Errors as messages and status codes, and back. Pure.

A status code says roughly what happened, and a ``SegmentError`` says it exactly: a client in Python raises the error
that the library raises.
"""

from __future__ import annotations

import math
import re
from typing import Final

from google.protobuf.message import DecodeError

from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.outcome import Outcome
from segments import errors
from segments.errors import StreamError
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_position, put_position

TRAILER: Final = "segments-error-bin"
"""The name of the trailer that holds a ``SegmentError``."""

RETRY_AFTER_MS: Final = 100
"""When a call that was refused for lack of room, or too early, may come again."""

STATUSES: Final[dict[type[StreamError], str]] = {
    StreamError: "UNKNOWN",
    errors.StreamNotFoundError: "NOT_FOUND",
    errors.StreamExistsError: "ALREADY_EXISTS",
    errors.StreamNameError: "INVALID_ARGUMENT",
    errors.StreamConfigError: "INVALID_ARGUMENT",
    errors.StreamSealedError: "FAILED_PRECONDITION",
    errors.StreamClosedError: "UNAVAILABLE",
    errors.UnsupportedStreamFormatError: "UNIMPLEMENTED",
    errors.OwnershipLostError: "ABORTED",
    errors.AppendOutcomeUnknownError: "ABORTED",
    errors.ProducerFencedError: "FAILED_PRECONDITION",
    errors.SequenceGapError: "FAILED_PRECONDITION",
    errors.SequenceTooOldError: "FAILED_PRECONDITION",
    errors.TxidOrderError: "FAILED_PRECONDITION",
    errors.TailMovedError: "FAILED_PRECONDITION",
    errors.RecordTooLargeError: "INVALID_ARGUMENT",
    errors.StreamOverloadedError: "RESOURCE_EXHAUSTED",
    errors.StreamNotReadyError: "UNAVAILABLE",
    errors.SegmentEmptyError: "FAILED_PRECONDITION",
    errors.StreamUnavailableError: "UNAVAILABLE",
    errors.StreamMetadataError: "UNAVAILABLE",
    errors.PositionTruncatedError: "OUT_OF_RANGE",
    errors.StreamGapError: "DATA_LOSS",
    errors.ReaderIdleError: "DEADLINE_EXCEEDED",
    errors.StreamCorruptError: "DATA_LOSS",
    errors.EntryCorruptError: "DATA_LOSS",
    errors.ChainCorruptError: "DATA_LOSS",
    errors.CursorNotFoundError: "NOT_FOUND",
    errors.CursorExistsError: "ALREADY_EXISTS",
    errors.CursorConflictError: "FAILED_PRECONDITION",
    errors.CursorVersionError: "OUT_OF_RANGE",
    errors.CursorFullError: "RESOURCE_EXHAUSTED",
    errors.TooManyCursorsError: "RESOURCE_EXHAUSTED",
    errors.TooManyStreamsError: "RESOURCE_EXHAUSTED",
    errors.HoldNotFoundError: "NOT_FOUND",
    errors.HoldExistsError: "ALREADY_EXISTS",
    errors.StreamHeldError: "FAILED_PRECONDITION",
    errors.StreamOwnedError: "FAILED_PRECONDITION",
    errors.BatchRefusedError: "FAILED_PRECONDITION",
    errors.PositionFormatError: "INVALID_ARGUMENT",
    errors.SeekFormatError: "INVALID_ARGUMENT",
    errors.ChainStepError: "FAILED_PRECONDITION",
    errors.GatewayRedirectError: "UNAVAILABLE",
    errors.GatewayTooOldError: "UNIMPLEMENTED",
    errors.StreamAccessError: "PERMISSION_DENIED",
    errors.MissingLibraryError: "UNIMPLEMENTED",
    errors.StreamInvariantError: "INTERNAL",
}
"""The status code of each error, by its name in gRPC."""

OUTCOMES: Final = {
    Outcome.REJECTED: pb.OUTCOME_NOT_APPLIED,
    Outcome.APPLIED: pb.OUTCOME_APPLIED,
    Outcome.UNKNOWN: pb.OUTCOME_UNKNOWN,
}
"""The number of each outcome in messages."""

_OUTCOME_OF: Final = {number: outcome for outcome, number in OUTCOMES.items()}


def code_of(kind: type[StreamError]) -> str:
    """The word of an error: stream-not-found for ``StreamNotFoundError``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__.removesuffix("Error")).lower()


_KINDS: Final = {code_of(kind): kind for kind in STATUSES}


def as_stream_error(error: BaseException) -> StreamError:
    """The error as one of this package: errors of the cluster count as unreachable, or as refused."""
    if isinstance(error, StreamError):
        return error
    text = in_words(error) if isinstance(error, Exception) else type(error).__name__
    if isinstance(error, BookKeeperError):
        if error.retryable:
            return errors.StreamUnavailableError(text)
        return StreamError(text, outcome=Outcome.UNKNOWN)
    return errors.StreamInvariantError(f"the gateway failed: {text or type(error).__name__}", outcome=Outcome.UNKNOWN)


def status_of(error: StreamError) -> str:
    """The status code. An append whose outcome is unknown is ABORTED, whatever made it so."""
    kind = next(kind for kind in type(error).__mro__ if kind in STATUSES)
    if isinstance(error, errors.AppendOutcomeUnknownError | errors.OwnershipLostError):
        return "ABORTED"
    return STATUSES[kind]


def put_error(error: StreamError) -> pb.SegmentError:
    """The message of an error."""
    kind = next(kind for kind in type(error).__mro__ if kind in STATUSES)
    numbers: dict[str, int] = {}
    if isinstance(error, errors.ProducerFencedError):
        numbers["epoch"] = error.epoch
    elif isinstance(error, errors.SequenceGapError):
        numbers["expected"] = error.expected
    elif isinstance(error, errors.TxidOrderError) and error.last is not None:
        numbers["last"] = error.last
    waits = error.retryable and isinstance(error, errors.StreamOverloadedError | errors.StreamNotReadyError)
    after_ms = RETRY_AFTER_MS if waits else 0
    if isinstance(error, errors.StreamOverloadedError) and error.after_s is not None:
        after_ms = math.ceil(error.after_s * 1000)
    return pb.SegmentError(
        code=code_of(kind),
        message=str(error),
        retryable=error.retryable,
        outcome=OUTCOMES[error.outcome],
        stream=error.stream,
        position=None if error.position is None else put_position(error.position),
        owner=error.owner,
        retry_after_ms=after_ms,
        numbers=numbers,
    )


def get_outcome(number: pb.Outcome) -> Outcome:
    """What a number in a message says; one of a later version says nothing."""
    return _OUTCOME_OF.get(number, Outcome.UNKNOWN)


def get_error(message: pb.SegmentError) -> StreamError:
    """The error in a message. One of a later version becomes a ``StreamError``, or an unavailable stream."""
    text, stream = message.message, message.stream or None
    position = get_position(message.position) if message.HasField("position") else None
    unknown = errors.StreamUnavailableError if message.retryable else StreamError
    kind = _KINDS.get(message.code, unknown)
    error: StreamError
    if kind is errors.ProducerFencedError:
        error = errors.ProducerFencedError(text, epoch=message.numbers["epoch"], stream=stream)
    elif kind is errors.SequenceGapError:
        error = errors.SequenceGapError(text, expected=message.numbers["expected"], stream=stream)
    elif kind is errors.TxidOrderError:
        last = message.numbers.get("last")
        error = errors.TxidOrderError(text, last=last, stream=stream)
    else:
        error = kind(text, stream=stream, position=position, owner=message.owner or None)
    error.outcome = get_outcome(message.outcome)
    if isinstance(error, errors.StreamOverloadedError) and message.retry_after_ms:
        error.after_s = message.retry_after_ms / 1000
    return error


def get_status(status: str, text: str, trailer: bytes | None, *, call: str = "", address: str = "") -> StreamError:
    """The error of a call that ended with this status.

    Args:
        call: the call, by service and name.
        address: the gateway's.
        status: the code's name in gRPC.
        text: what came with it.
        trailer: the ``SegmentError`` that came with it; None if none came, because a proxy or gRPC itself answered.
    """
    if trailer is not None:
        try:
            return get_error(pb.SegmentError.FromString(trailer))
        except DecodeError:  # what follows is all that is known
            pass
    match status:
        case "UNAUTHENTICATED" | "PERMISSION_DENIED":
            return errors.StreamAccessError(text)
        case "UNIMPLEMENTED":
            gateway = f"the gateway at {address}" if address else "the gateway"
            what = f"the call {call}" if call else "this call"
            return errors.GatewayTooOldError(f"{gateway} is of an older version, which does not know {what}")
        case "RESOURCE_EXHAUSTED" | "INVALID_ARGUMENT" | "OUT_OF_RANGE":
            return StreamError(f"the gateway refused the call: {text}")
    gateway = f"the gateway at {address}" if address else "the gateway"
    return errors.StreamUnavailableError(f"{gateway} did not answer: {_why(text) or status}")


_LAST: Final = re.compile(
    r"^failed to connect to all addresses; last error: (?:[A-Z_]+: )?(?:ipv[46]:\S+: )?"
    r"(?:Failed to connect to remote host: )?(.+)$"
)
"""gRPC's words for a connection that could not be made."""


def _why(text: str) -> str:
    """gRPC's text, without what it says of its own addresses and errors."""
    return _LAST.sub(r"\1", text)
