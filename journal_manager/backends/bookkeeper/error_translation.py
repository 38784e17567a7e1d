"""Translates BookKeeper's errors into those of journals."""

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
    NoClusterError,
    NoLedgerKeyError,
    NoSuchLedgerError,
    UnauthorizedError,
    in_words,
)
from journal_manager.errors import (
    JournalClosedError,
    JournalConfigError,
    JournalCorruptionError,
    JournalError,
    JournalUnavailableError,
    OpTooLargeError,
    SegmentNotFoundError,
)


def journal_error(error: BookKeeperError, what: str) -> JournalError:
    """Translate ``error``, which came while ``what`` was done. An error without a counterpart becomes "unavailable"."""
    text = f"{what}: {in_words(error)}"
    if isinstance(error, CorruptionError | DataMissingError):
        return JournalCorruptionError(text)
    if isinstance(error, NoSuchLedgerError):
        return SegmentNotFoundError(text)
    if isinstance(error, ConfigError | NoClusterError | NoLedgerKeyError | UnauthorizedError):
        return JournalConfigError(text)
    if isinstance(error, EntryTooLargeError):
        return OpTooLargeError(text)
    if isinstance(error, ClientClosedError):
        return JournalClosedError(text)
    return JournalUnavailableError(text)


@contextmanager
def worded(what: str) -> Iterator[None]:
    """Raise BookKeeper's errors as those of journals. Works around awaits, too."""
    try:
        yield
    except BookKeeperError as error:
        raise journal_error(error, what) from error
