"""Outcomes of requests: one neutral enum, its numbers in both dialects, and the errors they stand for.

The neutral values are v2's numbers. Which error a client raises follows Apache BookKeeper's tables
(CompletionValue, PerChannelBookieClient): an I/O error or "bad request" has no class of its own there and becomes
the operation's failure.
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
    """The bookie does not know (limbo). Apache's v2 client closes the connection when it gets this status."""


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


def error_of(status: Status, detail: str = "") -> BookKeeperError:
    """The error for a status that is not OK."""
    return ERRORS[status](detail or status.name.lower().replace("_", " "))


def status_of(error: BaseException) -> Status:
    """The status a bookie answers when ``error`` ended a request (subclasses count); BAD_REQUEST if nothing fits.

    OSError and StorageError are I/O errors, corruption as well: another replica may do better.
    """
    for status, cls in ERRORS.items():
        if isinstance(error, cls):
            return status
    if isinstance(error, DiskFullError):
        return Status.READ_ONLY
    if isinstance(error, CorruptionError | StorageError | OSError):
        return Status.IO_ERROR
    return Status.BAD_REQUEST
