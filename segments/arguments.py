"""What callers may have mistaken: refused by name, before anything is done. Pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final

from segments.errors import SeekFormatError, StreamConfigError
from segments.position import Position
from segments.seek import SEEK_FORMS, Ago, AtCursor, AtSeqNo, AtTime, AtTxId, Seek

GATEWAY_SCHEMES: Final = ("grpc://", "grpcs://")
"""How an address of gateways begins: in the clear, or with TLS."""

SEQUENCE_MAX: Final = 2**63 - 2
"""The highest number of a record: the one behind it must fit into 64 bits, too, or no later writer could note it."""


def check_address(uri: object) -> None:
    """Check that an address is a text at all. Raises: StreamConfigError."""
    if not isinstance(uri, str):
        raise StreamConfigError(
            f"an address is a text such as embedded:///DIR or grpc://HOST:PORT, not {type(uri).__name__}"
        )


def is_gateway_uri(uri: str) -> bool:
    """Whether an address is one of gateways."""
    return uri.startswith(GATEWAY_SCHEMES)


def check_whole(number: object, what: str) -> None:
    """Check that it is a whole number. One that only equals it passes every comparison, and spoils the entry that its
    record shares with others. Raises: StreamConfigError."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise StreamConfigError(f"{what} is a whole number, not {number!r}; nothing was done")


def check_sequence(stream: str, producer: str, first: int, records: int = 1) -> None:
    """Check the numbers of a producer's records. Raises: StreamConfigError."""
    check_whole(first, "the number of a producer's record")
    if first < 0 or first + records - 1 > SEQUENCE_MAX:
        raise StreamConfigError(
            f"producer {producer} of stream {stream} numbers its records from 0 to {SEQUENCE_MAX}, and these would be "
            f"{first} to {first + records - 1}",
            stream=stream,
        )


def check_gap_rule(gap: object) -> None:
    """Check what a producer does about numbers that are left out. Raises: StreamConfigError."""
    if gap not in ("strict", "monotonic"):
        raise StreamConfigError(f'gap is "strict" or "monotonic", not {gap!r}; nothing was done')


def check_timeout(timeout: object) -> None:
    """Check that it is a number of seconds, or None. Raises: StreamConfigError."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or math.isnan(timeout):
        raise StreamConfigError(f"a timeout is a number of seconds, not {timeout!r}; nothing was done")


def checked_seek(place: object) -> Seek:
    """A place in a stream. Raises: SeekFormatError: it is none."""
    match place:
        case Position() | AtCursor(name=str()) | Ago(age=timedelta()) | AtTime(time=datetime()):
            return place
        case AtTxId(txid=int()) | AtSeqNo(seq_no=int()):
            return place
        case str():
            raise SeekFormatError(
                f"{place!r} is a text and no position in a stream: segments.parse_seek(TEXT) reads {SEEK_FORMS}"
            )
    raise SeekFormatError(
        f"{place!r} names no position in a stream: give a Position, EARLIEST, LATEST, AtSeqNo, AtTxId, AtTime, Ago or "
        "AtCursor"
    )
