"""Where to begin, or to stop: a position, or a property that the stream turns into one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from segments.errors import SeekFormatError
from segments.position import EARLIEST, LATEST, Position
from segments.position_format import decode_position


@dataclass(frozen=True, slots=True)
class AtTxId:
    """The first record with this transaction id, or a greater one."""

    txid: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record appended at this time or later; by event time if ``event`` is set."""

    time: datetime
    event: bool = False


@dataclass(frozen=True, slots=True)
class AtSeqNo:
    """The record with this number, counted from the stream's beginning."""

    seq_no: int


@dataclass(frozen=True, slots=True)
class Ago:
    """The first record appended within this time before now."""

    age: timedelta


@dataclass(frozen=True, slots=True)
class AtCursor:
    """The first record that the cursor of this name has not acknowledged."""

    name: str


Seek: TypeAlias = Position | AtTxId | AtTime | AtSeqNo | Ago | AtCursor

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AGE: Final = re.compile(r"-(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_TRIPLE: Final = re.compile(r"(\d+):(\d+):(-?\d+)")

SEEK_FORMS: Final = (
    "earliest, latest, a position (base64, or segment:entry:slot), txid:N, seq:N, time:2026-11-23T04:00:00Z, "
    "event:TIME, -90s (also ms, m, h, d), or cursor:NAME"
)


def parse_seek(text: str) -> Seek:
    """Read what people write: one of ``SEEK_FORMS``. A time without a zone is UTC.

    Raises:
        SeekFormatError: it is none of them.
    """
    kind, _, rest = text.partition(":")
    try:
        if text == "earliest":
            return EARLIEST
        if text == "latest":
            return LATEST
        if found := _TRIPLE.fullmatch(text):
            return Position(*map(int, found.groups()))
        if found := _AGE.fullmatch(text):
            return Ago(timedelta(seconds=float(found[1]) * _UNITS[found[2]]))
        if kind == "txid":
            return AtTxId(_number(rest))
        if kind == "seq":
            return AtSeqNo(_number(rest))
        if kind in ("time", "event"):
            time = datetime.fromisoformat(rest)
            return AtTime(time if time.tzinfo is not None else time.replace(tzinfo=UTC), event=kind == "event")
        if kind == "cursor" and rest:
            return AtCursor(rest)
        return decode_position(text)
    except (ValueError, OverflowError) as error:
        raise SeekFormatError(f"{text!r} names no position in a stream: give {SEEK_FORMS}") from error


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no whole number")
    return int(text)
