"""What callers may have mistaken: refused by name, before anything is done. Pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from segments.errors import SeekFormatError, StreamConfigError
from segments.position import Position
from segments.seek import SEEK_FORMS, Ago, AtCursor, AtSeqNo, AtTime, AtTxId, Seek


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
                f"{place!r} is a text and no place in a stream: segments.parse_seek(TEXT) reads {SEEK_FORMS}"
            )
    raise SeekFormatError(
        f"{place!r} is no place in a stream: give a Position, EARLIEST, LATEST, AtSeqNo, AtTxId, AtTime, Ago or "
        "AtCursor"
    )
