"""Holds: named pins on ranges of a stream, which keep retention and truncation away (pure).

A hold says "these records stay until I say otherwise", for a query that may read them again, a backup, a dispute. It
may end by itself at a time. Neither retention nor truncation removes a record that an active hold covers.

    put(hold)          a name that is free, or the same name with another range
    release(name)      the pin is gone
    sweep(now)         the expired ones are gone
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from segments.errors import HoldNotFoundError, StreamConfigError, StreamCorruptError
from segments.position import EARLIEST, LATEST, Position
from segments.position_format import decode_position, encode_position
from segments.retention.checked_json import checked_fields, pack_json, unpack_json

FORMAT: Final = 1
NAME_MAX: Final = 200
NOTE_MAX: Final = 1000
"""Characters of a note. All holds of a stream share one value of the metadata store."""
"""The longest name, in characters."""
HOLDS_MAX: Final = 1000
"""The most holds of one stream: all of them are one value in the metadata store."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One pin. It covers the positions from ``start`` up to, and without, ``stop``."""

    name: str
    start: Position = EARLIEST
    stop: Position = LATEST
    """LATEST: also what is appended later."""
    until_ms: int | None = None
    """When it ends by itself, in milliseconds since 1970; None: never."""
    created_ms: int = 0
    note: str = ""
    """For people: who wants it, and why."""
    by: str = ""
    """Who put it, as a gateway knew him; empty: nobody was asked."""

    @property
    def until(self) -> datetime | None:
        """When it ends by itself."""
        return None if self.until_ms is None else datetime.fromtimestamp(self.until_ms / 1000, UTC)

    def is_active(self, now_ms: int) -> bool:
        """Whether it still pins anything."""
        return self.until_ms is None or now_ms < self.until_ms

    def touches(self, first: Position, end: Position) -> bool:
        """Whether it covers a position from ``first`` up to, and without, ``end``."""
        return self.start < end and first < self.stop

    def says(self) -> str:
        """The hold in words."""
        until = "" if self.until is None else f" until {self.until:%Y-%m-%d %H:%M:%S} UTC"
        by = f" by {self.by}" if self.by else ""
        note = f" ({self.note})" if self.note else ""
        return f"hold {self.name}{by}{until}{note}"


@dataclass(frozen=True, slots=True)
class Holds:
    """The holds of a stream. Every change returns the next value."""

    by_name: dict[str, Hold] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Hold]:
        return iter(sorted(self.by_name.values(), key=_in_order))

    def __len__(self) -> int:
        return len(self.by_name)

    def put(self, hold: Hold, start: Position) -> Holds:
        """Add a hold, or give one of this name another range. ``start`` is the stream's first position.

        Raises:
            StreamConfigError: the name is empty or too long, the note is too long, the range is empty or begins before
                ``start``, or there are too many holds.
        """
        if not hold.name or len(hold.name) > NAME_MAX or not hold.name.isprintable():
            raise StreamConfigError(f"a hold's name has 1 to {NAME_MAX} printable characters")
        if len(hold.note) > NOTE_MAX:
            raise StreamConfigError(f"a hold's note has at most {NOTE_MAX} characters, and this has {len(hold.note)}")
        if hold.start < start:
            hold = _from(hold, start)
        if hold.stop <= hold.start:
            raise StreamConfigError(
                f"hold {hold.name} covers nothing: it ends at {hold.stop}, and begins at {hold.start}"
            )
        if hold.name not in self.by_name and len(self.by_name) >= HOLDS_MAX:
            raise StreamConfigError(f"a stream has at most {HOLDS_MAX} holds: release some")
        return Holds({**self.by_name, hold.name: hold})

    def release(self, name: str) -> Holds:
        """Remove a hold. Raises HoldNotFoundError."""
        if name not in self.by_name:
            raise HoldNotFoundError(f"the stream has no hold named {name}; bk stream hold list shows those that it has")
        return Holds({key: hold for key, hold in self.by_name.items() if key != name})

    def sweep(self, now_ms: int) -> Holds:
        """Remove the expired ones."""
        return Holds({hold.name: hold for hold in self.active(now_ms)})

    def active(self, now_ms: int) -> tuple[Hold, ...]:
        """The holds that have not expired, by their start."""
        return tuple(hold for hold in self if hold.is_active(now_ms))

    def encode(self) -> bytes:
        """The holds as a value of the metadata store."""
        return pack_json(
            FORMAT,
            [
                {
                    "name": hold.name,
                    "start": encode_position(hold.start),
                    "stop": encode_position(hold.stop),
                    "until_ms": hold.until_ms,
                    "created_ms": hold.created_ms,
                    "note": hold.note,
                    **({"by": hold.by} if hold.by else {}),
                }
                for hold in self
            ],
        )

    @classmethod
    def decode(cls, data: bytes) -> Holds:
        """Read them. Raises StreamCorruptError, UnsupportedStreamFormatError."""
        try:
            found = [_decoded(line) for line in unpack_json(data, FORMAT, _WHAT)]
        except (TypeError, ValueError) as error:
            raise StreamCorruptError(f"{_WHAT} cannot be read") from error
        return cls({hold.name: hold for hold in found})


_WHAT: Final = "a stream's holds"
_KINDS: Final = {"name": str, "start": str, "stop": str, "created_ms": int, "note": str}
_EARLIEST_MS: Final = -62_135_596_800_000
_LATEST_MS: Final = 253_402_300_799_999
"""Where dates begin and end: the years 1 and 9999."""


def _decoded(line: object) -> Hold:
    """Raises: StreamCorruptError. ValueError: there is no such position."""
    found = checked_fields(line, _KINDS, _WHAT)
    until_ms, by = found.get("until_ms"), found.get("by", "")  # earlier versions keep no ``by``, and do not look at it
    if until_ms is not None and (type(until_ms) is not int or not _EARLIEST_MS <= until_ms <= _LATEST_MS):
        raise StreamCorruptError(f"{_WHAT} cannot be read: one ends at {str(until_ms)[:60]}")
    if type(by) is not str:
        raise StreamCorruptError(f"{_WHAT} cannot be read: one was put by {str(by)[:60]}")
    start, stop = decode_position(found["start"]), decode_position(found["stop"])
    return Hold(found["name"], start, stop, until_ms, found["created_ms"], found["note"], by)


def _from(hold: Hold, start: Position) -> Hold:
    """The same hold; what is before ``start`` is gone already, unless the range is open there."""
    if hold.start != EARLIEST:
        raise StreamConfigError(f"hold {hold.name} begins at {hold.start}, and the stream at {start}")
    return replace(hold, start=start)


def _in_order(hold: Hold) -> tuple[Position, str]:
    return hold.start, hold.name


def first_held(holds: Iterable[Hold], now_ms: int, first: Position, end: Position) -> Hold | None:
    """The active hold that covers the lowest position from ``first`` up to, and without, ``end``."""
    held = [hold for hold in holds if hold.is_active(now_ms) and hold.touches(first, end)]
    return min(held, key=_in_order, default=None)
