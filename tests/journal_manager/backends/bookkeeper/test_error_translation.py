"""BookKeeper's errors in the words of journals."""

from __future__ import annotations

import pytest

from bookkeeper import errors as bk
from journal_manager import errors as jm
from journal_manager.backends.bookkeeper.error_translation import journal_error, worded


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (bk.DigestMismatchError("x"), jm.JournalCorruptionError),
        (bk.DataMissingError("x"), jm.JournalCorruptionError),
        (bk.NoSuchLedgerError("x"), jm.SegmentNotFoundError),
        (bk.UnauthorizedError("x"), jm.JournalConfigError),
        (bk.NoLedgerKeyError("x"), jm.JournalConfigError),
        (bk.NoClusterError("x"), jm.JournalConfigError),
        (bk.EntryTooLargeError("x"), jm.OpTooLargeError),
        (bk.ClientClosedError("x"), jm.JournalClosedError),
        (bk.NotEnoughBookiesError("x"), jm.JournalUnavailableError),
        (bk.RecoveryInconclusiveError("x"), jm.JournalUnavailableError),
        (bk.MetadataUnavailableError("x"), jm.JournalUnavailableError),
        (bk.AddTimeoutError("x"), jm.JournalUnavailableError),
    ],
)
def test_families(error: bk.BookKeeperError, expected: type[jm.JournalError]) -> None:
    assert type(journal_error(error, "doing")) is expected
    with pytest.raises(expected, match="doing: ") as caught, worded("doing"):
        raise error
    assert caught.value.__cause__ is error


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), worded("doing"):
        raise ZeroDivisionError
