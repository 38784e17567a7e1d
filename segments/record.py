"""What a user appends, and what a reader gets back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Final, NamedTuple

from segments.position import Position

NO_HEADERS: Final[Mapping[str, bytes]] = {}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def to_ms(time: datetime) -> int:
    """Milliseconds since 1970, rounded down.

    Raises:
        ValueError: the time has no zone.
    """
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone: use an aware datetime")
    return (time - _EPOCH) // _MILLISECOND


def from_ms(ms: int) -> datetime:
    """The time, in UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


@dataclass(frozen=True, slots=True)
class Record:
    """A record to append. Only ``value`` is needed."""

    value: bytes
    txid: int | None = None
    """The application's own number: at least 0, and never lower than that of the record before."""
    key: bytes | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)
    event_time: datetime | None = None
    """When it happened, as the application sees it: an aware datetime, kept to the millisecond."""


class ProducerRef(NamedTuple):
    """Who appended a record, and as which of its records."""

    name: str
    epoch: int
    sequence: int


class StoredRecord(NamedTuple):
    """A record of a stream. Times are milliseconds since 1970; the properties give datetimes."""

    position: Position
    seq_no: int
    """Counts the stream's records from 0, without a gap."""
    value: bytes
    txid: int | None
    key: bytes | None
    headers: Mapping[str, bytes]
    event_ms: int | None
    append_ms: int
    producer: ProducerRef | None

    @property
    def event_time(self) -> datetime | None:
        """When it happened, as the application said."""
        return None if self.event_ms is None else from_ms(self.event_ms)

    @property
    def append_time(self) -> datetime:
        """When the writer put it into an entry."""
        return from_ms(self.append_ms)

    def as_record(self) -> Record:
        """The same content, to append it elsewhere."""
        return Record(self.value, self.txid, self.key, self.headers, self.event_time)


class AppendResult(NamedTuple):
    """Where the records of one append stand. They are durable."""

    position: Position
    """Of the first record."""
    last: Position
    """Of the last record; the same as ``position`` for one record."""
    seq_no: int | None
    """The number of the first record. None for a duplicate of which only the position is remembered: the record that is
    read there has it."""
    txid: int | None
    """Of the last record; None for a duplicate."""
    duplicate: bool = False
    """These records were in the stream already: the producer had appended them before."""


class GapKind(Enum):
    """Why records are missing."""

    TRUNCATED = "truncated"
    """Someone truncated the stream."""
    EXPIRED = "expired"
    """Retention removed them."""
    CORRUPT = "corrupt"
    """An entry is there, and is not what was written."""
    LOST = "lost"
    """An entry that must exist is on none of its bookies."""
    FILTERED = "filtered"
    """The reader asked for other records."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Positions from which no record can be given. A reader that was asked for gaps yields it in a record's place."""

    first: Position
    last: Position
    """The last position without a record."""
    kind: GapKind
    records: int | None = None
    """How many records are missing, where that is known."""
    detail: str = ""
