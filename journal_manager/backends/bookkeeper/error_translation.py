"""BookKeeper's errors in the words of journals."""

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
    NoSuchLedgerError,
    UnauthorizedError,
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
    """``error`` met while doing ``what``; everything without a word of its own is "unavailable"."""
    text = f"{what}: {error!r}"
    if isinstance(error, CorruptionError | DataMissingError):
        return JournalCorruptionError(text)
    if isinstance(error, NoSuchLedgerError):
        return SegmentNotFoundError(text)
    if isinstance(error, ConfigError | NoClusterError | UnauthorizedError):
        return JournalConfigError(text)
    if isinstance(error, EntryTooLargeError):
        return OpTooLargeError(text)
    if isinstance(error, ClientClosedError):
        return JournalClosedError(text)
    return JournalUnavailableError(text)


@contextmanager
def worded(what: str) -> Iterator[None]:
    """Raise BookKeeper's errors as ours. Also around awaits."""
    try:
        yield
    except BookKeeperError as error:
        raise journal_error(error, what) from error
