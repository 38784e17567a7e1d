"""Translates BookKeeper's errors into those of streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bookkeeper.errors import (
    BookKeeperError,
    ClientClosedError,
    ConfigError,
    CorruptionError,
    DataMissingError,
    EntryTooLargeError,
    MetadataError,
    NoClusterError,
    NoLedgerKeyError,
    UnauthorizedError,
    in_words,
)
from bookkeeper.outcome import Outcome
from segments.errors import (
    RecordTooLargeError,
    StreamClosedError,
    StreamConfigError,
    StreamCorruptError,
    StreamError,
    StreamMetadataError,
    StreamUnavailableError,
)


def stream_error(error: BookKeeperError, what: str, stream: str | None = None) -> StreamError:
    """Translate ``error``, which came while ``what`` was done. An error without a counterpart becomes "unavailable"."""
    text = f"{what}: {in_words(error)}"
    outcome = Outcome.UNKNOWN if error.outcome is Outcome.UNKNOWN else Outcome.REJECTED
    if isinstance(error, CorruptionError | DataMissingError):
        return StreamCorruptError(text, stream=stream, outcome=outcome)
    if isinstance(error, ConfigError | NoClusterError | NoLedgerKeyError | UnauthorizedError):
        return StreamConfigError(text, stream=stream, outcome=outcome)
    if isinstance(error, EntryTooLargeError):
        return RecordTooLargeError(text, stream=stream, outcome=outcome)
    if isinstance(error, ClientClosedError):
        return StreamClosedError(text, stream=stream, outcome=outcome)
    if isinstance(error, MetadataError):
        return StreamMetadataError(text, stream=stream, outcome=outcome)
    return StreamUnavailableError(text, stream=stream, outcome=outcome)


@contextmanager
def worded(what: str, stream: str | None = None) -> Iterator[None]:
    """Raise BookKeeper's errors as those of streams. Works around awaits, too."""
    try:
        yield
    except BookKeeperError as error:
        raise stream_error(error, what, stream) from error
