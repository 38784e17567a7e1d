"""The outcomes of requests: one enum for both dialects, its numbers in each, and the errors that they stand for.

The enum's values are the numbers of v2. Which error a client raises follows Apache BookKeeper's tables
(CompletionValue, PerChannelBookieClient). Apache's client has no class for an I/O error or for "bad request": there
the whole operation fails instead.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from bookkeeper.codec.shapes import V3_STATUS
from bookkeeper.errors import (
    BadRequestError,
    BookieFailedError,
    BookieReadOnlyError,
    BookKeeperError,
    CorruptionError,
    DataUnknownError,
    DiskFullError,
    LedgerFencedError,
    NoSuchEntryError,
    NoSuchLedgerError,
    ProtocolVersionError,
    StorageError,
    TooManyRequestsError,
    UnauthorizedError,
)


class Status(IntEnum):
    """The outcome of a request, in both dialects."""

    OK = 0
    NO_LEDGER = 1
    NO_ENTRY = 2
    BAD_REQUEST = 100
    IO_ERROR = 101
    UNAUTHORIZED = 102
    BAD_VERSION = 103
    FENCED = 104
    READ_ONLY = 105
    TOO_MANY_REQUESTS = 106
    UNKNOWN_STATE = 107
    """The bookie does not know whether it had the entry (limbo). Apache's v2 client closes the connection then."""


TO_V3: Final[dict[Status, int]] = {Status(number): v3 for number, v3 in V3_STATUS.items()}
FROM_V3: Final[dict[int, Status]] = {number: status for status, number in TO_V3.items()}

TO_V2: Final[dict[Status, int]] = {status: int(status) for status in Status}
FROM_V2: Final[dict[int, Status]] = {number: status for status, number in TO_V2.items()}

ERRORS: Final[dict[Status, type[BookKeeperError]]] = {
    Status.NO_LEDGER: NoSuchLedgerError,
    Status.NO_ENTRY: NoSuchEntryError,
    Status.BAD_REQUEST: BadRequestError,
    Status.IO_ERROR: BookieFailedError,
    Status.UNAUTHORIZED: UnauthorizedError,
    Status.BAD_VERSION: ProtocolVersionError,
    Status.FENCED: LedgerFencedError,
    Status.READ_ONLY: BookieReadOnlyError,
    Status.TOO_MANY_REQUESTS: TooManyRequestsError,
    Status.UNKNOWN_STATE: DataUnknownError,
}
"""The error class that a client raises for each status; OK has none."""

WORDS: Final[dict[Status, str]] = {
    Status.NO_LEDGER: "the bookie has no such ledger",
    Status.NO_ENTRY: "the bookie does not have the entry",
    Status.BAD_REQUEST: "the bookie refuses the request as malformed",
    Status.IO_ERROR: "the bookie failed with an I/O error or an unexpected condition; its log says more",
    Status.UNAUTHORIZED: "the bookie refuses the password or the client",
    Status.BAD_VERSION: "the bookie speaks another version of the protocol",
    Status.FENCED: "the ledger is fenced, because another client recovers it",
    Status.READ_ONLY: "the bookie is read-only and takes no new entries",
    Status.TOO_MANY_REQUESTS: "the bookie has as many requests in progress as it allows",
    Status.UNKNOWN_STATE: "the bookie cannot tell whether it ever had the entry",
}
"""What each status means, as error messages say it; OK needs no words."""


def error_of(status: Status, what: str = "") -> BookKeeperError:
    """The error for a status that is not OK. ``what`` names the request; the error says what the status means."""
    return ERRORS[status](f"{what}: {WORDS[status]}" if what else WORDS[status])


def status_of(error: BaseException) -> Status:
    """The status that a bookie answers when ``error`` ended a request; BAD_REQUEST if nothing fits.

    A subclass of an error has the status of that error. OSError, StorageError and CorruptionError are I/O errors:
    another replica may do better.
    """
    for status, cls in ERRORS.items():
        if isinstance(error, cls):
            return status
    if isinstance(error, DiskFullError):
        return Status.READ_ONLY
    if isinstance(error, CorruptionError | StorageError | OSError):
        return Status.IO_ERROR
    return Status.BAD_REQUEST
