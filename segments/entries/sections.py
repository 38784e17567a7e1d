"""Where the columns of records lie in the body of an entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from bookkeeper.amounts import counted
from segments.entries.layout import BATCH, ONE_BATCH, BatchFlag, Columns, padded

_PRODUCER: Final = BatchFlag.PRODUCER.value
_KEYS, _KEY_NULLS = Columns.KEYS.value, Columns.KEY_NULLS.value
_TXIDS, _TXID_NULLS = Columns.TXIDS.value, Columns.TXID_NULLS.value
_EVENTS, _EVENT_NULLS = Columns.EVENTS.value, Columns.EVENT_NULLS.value
_HEADERS: Final = Columns.HEADERS.value
"""As plain numbers, because a flag that is masked is made anew, which takes longer than to find a column."""


class EntryBatch(NamedTuple):
    """Records of an entry that were appended together, or by the same producer one after the other."""

    records: int
    producer: str | None = None
    epoch: int = 0
    first_sequence: int = 0
    """Of the first record; each further record has the next one."""

    @property
    def last_sequence(self) -> int:
        """Of the last record."""
        return self.first_sequence + self.records - 1


class PieceInfo(NamedTuple):
    """Which piece of too many bytes an entry holds."""

    number: int
    """From 0. The first piece is this many entries before."""
    pieces: int
    total: int
    """The bytes of all pieces together."""

    @property
    def is_last(self) -> bool:
        """The records stand at this one's entry."""
        return self.number == self.pieces - 1


class StringSection(NamedTuple):
    """A column of strings where it lies in a body."""

    offsets: memoryview
    data: memoryview


NO_STRINGS: Final = StringSection(memoryview(bytes(4)), memoryview(b""))


@dataclass(frozen=True, slots=True)
class Sections:
    """Where the columns lie in a body."""

    batches: tuple[EntryBatch, ...]
    values: StringSection = NO_STRINGS
    keys: StringSection | None = None
    key_bits: memoryview | None = None
    txids: memoryview | None = None
    txid_bits: memoryview | None = None
    events: memoryview | None = None
    event_bits: memoryview | None = None
    headers: StringSection | None = None

    @property
    def has_producers(self) -> bool:
        """Whether any record has a producer."""
        return any(batch.producer is not None for batch in self.batches)


def read_sections(body: memoryview, flags: Columns, records: int, batch_count: int) -> Sections:
    """Find the columns of ``records`` records in a body. Raises ValueError or struct.error if it is none."""
    if batch_count == 1 and not flags:
        return _only_values(body, records)
    at = batch_count * BATCH.size
    table = list(BATCH.iter_unpack(body[:at]))
    begin, batches = at, []
    for number, size, batch_flags, epoch, sequence in table:
        name = str(body[at : at + size], "utf-8")
        batches.append(EntryBatch(number, name if batch_flags & _PRODUCER else None, epoch, sequence))
        at += size
    if sum(batch.records for batch in batches) != records:
        raise ValueError(f"its batches do not have {counted(records, 'record')}")
    at = begin + padded(at - begin)

    def section(size: int) -> memoryview:
        nonlocal at
        found = body[at : at + size]
        if len(found) != size:
            raise ValueError("a column is cut short")
        at += padded(size)
        return found

    def strings() -> StringSection:
        offsets = section(4 * (records + 1))
        return StringSection(offsets, section(int.from_bytes(offsets[-4:], "little", signed=True)))

    def bitmap(present: bool) -> memoryview | None:
        return section((records + 7) // 8) if present else None

    used = flags.value
    values = strings()
    keys = strings() if used & _KEYS else None
    key_bits = bitmap(bool(used & _KEY_NULLS))
    txids = section(8 * records) if used & _TXIDS else None
    txid_bits = bitmap(bool(used & _TXID_NULLS))
    events = section(8 * records) if used & _EVENTS else None
    event_bits = bitmap(bool(used & _EVENT_NULLS))
    headers = strings() if used & _HEADERS else None
    if at != len(body):
        raise ValueError(f"its body has {len(body)} bytes, and its columns {at}")
    return Sections(tuple(batches), values, keys, key_bits, txids, txid_bits, events, event_bits, headers)


def only_value(body: bytes | memoryview) -> bytes | None:
    """The value of the one record in a body of one batch with values only. None: there is more to it, which
    read_sections finds, or says what is wrong.

    A reader of a stream whose writer waits for each record reads such entries alone, so they are read without sections.
    """
    if len(body) < ONE_BATCH.size:
        return None
    number, name, flags, _, _, begin, end = ONE_BATCH.unpack_from(body)
    if number != 1 or name or flags or begin or end < 0 or ONE_BATCH.size + ((end + 7) & ~7) != len(body):
        return None
    return bytes(body[ONE_BATCH.size : ONE_BATCH.size + end])


def _only_values(body: memoryview, records: int) -> Sections:
    """The same for one batch with values only. Most entries are such, and many are small."""
    number, size, batch_flags, epoch, sequence = BATCH.unpack_from(body)
    at = BATCH.size
    name = str(body[at : at + size], "utf-8") if batch_flags & _PRODUCER else None
    if number != records:
        raise ValueError(f"its batches do not have {counted(records, 'record')}")
    at += padded(size)
    end = at + 4 * (records + 1)
    offsets = body[at:end]
    if len(offsets) != end - at:
        raise ValueError("a column is cut short")
    at += padded(end - at)
    size = int.from_bytes(offsets[-4:], "little", signed=True)
    if at + padded(size) != len(body):
        raise ValueError(f"its body has {len(body)} bytes, and its columns {at + padded(size)}")
    return Sections((EntryBatch(number, name, epoch, sequence),), StringSection(offsets, body[at : at + size]))
