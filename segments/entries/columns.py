"""Records as columns: what an entry stores, built without a step per record where only values are given.

A bitmap has one bit per record, the lowest bit of the first byte first, as Arrow has it.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import attrgetter
from typing import Final, Literal

from segments.errors import EntryCorruptError
from segments.record import NO_HEADERS, Record, to_ms

_BITS: Final = bytes.maketrans(b"\x00\x01", b"01")
_COUNT: Final = struct.Struct("<H")
_NAME: Final = struct.Struct("<HI")
"""Of a header: the bytes of its name, and of its value."""


@dataclass(frozen=True, slots=True)
class BytesColumn:
    """Strings of bytes, one after the other; string i is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: bytes
    """int32, one more than there are strings."""
    data: bytes

    @classmethod
    def of(cls, strings: Sequence[bytes]) -> BytesColumn:
        """The column of these strings.

        Raises:
            TypeError: one is not bytes.
        """
        data = b"".join(strings)
        offsets = array("i", accumulate(map(len, strings), initial=0))
        return cls(_little(offsets), data)

    @property
    def size(self) -> int:
        """The bytes of all strings."""
        return len(self.data)


class BytesPieces:
    """The same column while its bytes lie in buffers of others, one piece after the other. Encoding an entry copies
    them once, into the entry."""

    __slots__ = ("offsets", "pieces", "size")

    def __init__(self, offsets: bytes, pieces: Sequence[memoryview]) -> None:
        """Nobody may change what the pieces show. A string lies in one piece or in several."""
        self.offsets = offsets
        """As :attr:`BytesColumn.offsets`, over all pieces."""
        self.pieces = pieces
        self.size = sum(map(len, pieces))
        """The bytes of all strings."""

    @property
    def data(self) -> bytes:
        """As :attr:`BytesColumn.data`."""
        return b"".join(self.pieces)


class ByteStrings:
    """The same column while its strings lie where their owners have put them. Encoding an entry copies them once, into
    the entry; whoever wants the column has them joined."""

    __slots__ = ("size", "strings")

    def __init__(self, strings: list[bytes]) -> None:
        """``strings`` must not be changed any more."""
        self.strings = strings
        self.size = sum(map(len, strings))
        """The bytes of all strings."""

    @property
    def offsets(self) -> bytes:
        """As :attr:`BytesColumn.offsets`."""
        return _little(array("i", accumulate(map(len, self.strings), initial=0)))

    @property
    def data(self) -> bytes:
        """As :attr:`BytesColumn.data`."""
        return b"".join(self.strings)


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Some records, as columns. A column that no record uses is None."""

    count: int
    values: BytesColumn | BytesPieces | ByteStrings
    keys: BytesColumn | None = None
    key_bits: bytes | None = None
    """Which records have a key; None if all have, or none."""
    txids: bytes | None = None
    """int64; 0 for a record without one."""
    txid_bits: bytes | None = None
    events: bytes | None = None
    """Event times as int64, milliseconds since 1970; 0 for a record without one."""
    event_bits: bytes | None = None
    headers: BytesColumn | None = None
    first_txid: int | None = None
    last_txid: int | None = None
    min_event_ms: int | None = None
    max_event_ms: int | None = None

    @classmethod
    def of_values(cls, values: Sequence[bytes], *, txids: Sequence[int] | None = None) -> RecordColumns:
        """The columns of records that have only a value, and perhaps a transaction id.

        Raises:
            TypeError: a value is not bytes. OverflowError: a transaction id does not fit into 64 bits.
        """
        column = BytesColumn.of(values)
        if txids is None or not values:
            return cls(len(values), column)
        return cls(len(values), column, txids=_little(array("q", txids)), first_txid=txids[0], last_txid=txids[-1])

    @classmethod
    def of_gathered(cls, values: list[bytes]) -> RecordColumns:
        """The columns of records that have only a value; the values, which must be bytes, are not joined yet."""
        return cls(len(values), ByteStrings(values))

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> RecordColumns:
        """The columns of records.

        Raises:
            TypeError: a value or key is not bytes. ValueError: an event time has no zone, or a header is too long.
            OverflowError: a number does not fit into 64 bits.
        """
        values = BytesColumn.of(list(map(_VALUE, records)))
        keys = list(map(_KEY, records))
        txids = list(map(_TXID, records))
        events = list(map(_EVENT, records))
        headers = list(map(_HEADERS, records))
        key_column, key_bits = None, None
        if any(key is not None for key in keys):
            key_bits = _bits(keys)
            key_column = BytesColumn.of([b"" if key is None else key for key in keys])
        txid_column, txid_bits = _numbers(txids)
        event_ms = [None if event is None else to_ms(event) for event in events]
        event_column, event_bits = _numbers(event_ms)
        times = [ms for ms in event_ms if ms is not None]
        known = [txid for txid in txids if txid is not None]
        return cls(
            len(records),
            values,
            key_column,
            key_bits,
            txid_column,
            txid_bits,
            event_column,
            event_bits,
            BytesColumn.of([encode_headers(each) for each in headers]) if any(headers) else None,
            known[0] if known else None,
            known[-1] if known else None,
            min(times, default=None),
            max(times, default=None),
        )

    @property
    def is_plain(self) -> bool:
        """Whether there are values and nothing else."""
        return self.keys is None and self.txids is None and self.events is None and self.headers is None

    @property
    def size(self) -> int:
        """The bytes of the columns in an entry, without padding."""
        return sum(
            len(column)
            for column in (self.key_bits, self.txids, self.txid_bits, self.events, self.event_bits)
            if column is not None
        ) + sum(
            len(column.offsets) + column.size for column in (self.values, self.keys, self.headers) if column is not None
        )


_VALUE: Final = attrgetter("value")
_KEY: Final = attrgetter("key")
_TXID: Final = attrgetter("txid")
_EVENT: Final = attrgetter("event_time")
_HEADERS: Final = attrgetter("headers")


def joined(parts: Sequence[RecordColumns]) -> RecordColumns:
    """The records of all parts, in order, as one."""
    parts = [part for part in parts if part.count] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    txid_column, txid_bits = _join_numbers([(p.count, p.txids, p.txid_bits) for p in parts])
    event_column, event_bits = _join_numbers([(p.count, p.events, p.event_bits) for p in parts])
    keys, key_bits = None, None
    if any(p.keys is not None for p in parts):
        keys = _join_bytes([(p.count, p.keys) for p in parts])
        key_bits = _join_bits([(p.count, p.keys is not None, p.key_bits) for p in parts])
    headers = None
    if any(p.headers is not None for p in parts):
        headers = _join_bytes([(p.count, p.headers) for p in parts])
    return RecordColumns(
        sum(p.count for p in parts),
        _join_bytes([(p.count, p.values) for p in parts]),
        keys,
        key_bits,
        txid_column,
        txid_bits,
        event_column,
        event_bits,
        headers,
        next((p.first_txid for p in parts if p.first_txid is not None), None),
        next((p.last_txid for p in reversed(parts) if p.last_txid is not None), None),
        min((p.min_event_ms for p in parts if p.min_event_ms is not None), default=None),
        max((p.max_event_ms for p in parts if p.max_event_ms is not None), default=None),
    )


def encode_headers(headers: Mapping[str, bytes]) -> bytes:
    """One record's headers: their number, then length and bytes of each name and value.

    Raises:
        ValueError: there are too many, or a name is too long.
    """
    if not headers:
        return b""
    parts: list[bytes] = []
    try:
        parts.append(_COUNT.pack(len(headers)))
        for name, value in headers.items():
            raw = name.encode()
            parts += (_NAME.pack(len(raw), len(value)), raw, value)
    except struct.error as error:
        raise ValueError("a record has at most 65,535 headers, and a header's name at most 65,535 bytes") from error
    return b"".join(parts)


def decode_headers(raw: bytes) -> Mapping[str, bytes]:
    """Read what ``encode_headers`` wrote.

    Raises:
        EntryCorruptError: it is not that.
    """
    if not raw:
        return NO_HEADERS
    _, names, values = header_columns((raw,))
    try:
        return {name.decode(): value for name, value in zip(names, values, strict=True)}
    except UnicodeDecodeError as error:
        raise EntryCorruptError(f"a record's headers are damaged: {error}") from error


def header_columns(raws: Iterable[bytes]) -> tuple[list[int | None], list[bytes], list[bytes]]:
    """The headers of records, each as ``encode_headers`` wrote it: of each record the place of its first name, None
    without any, and at the end how many names there are; all names; all values.

    Raises:
        EntryCorruptError: one of them is not that.
    """
    places: list[int | None] = []
    names: list[bytes] = []
    values: list[bytes] = []
    for raw in raws:
        if not raw:
            places.append(None)
            continue
        places.append(len(names))
        try:
            (count,) = _COUNT.unpack_from(raw)
            at = _COUNT.size
            for _ in range(count):
                name_size, value_size = _NAME.unpack_from(raw, at)
                at += _NAME.size
                middle, end = at + name_size, at + name_size + value_size
                names.append(raw[at:middle])
                values.append(raw[middle:end])
                at = end
        except struct.error as error:
            raise EntryCorruptError(f"a record's headers are damaged: {error}") from error
        if at > len(raw):
            raise EntryCorruptError("a record's headers are cut short")
    places.append(len(names))
    return places, names, values


def bits_of(flags: bytes) -> bytes:
    """The bitmap of ``flags``, which has a byte 0 or 1 for each record."""
    size = (len(flags) + 7) // 8
    return int(flags.translate(_BITS)[::-1] or b"0", 2).to_bytes(size, "little")


def flags_of(bits: bytes | memoryview, count: int) -> bytes:
    """A byte 0 or 1 for each of ``count`` records, from their bitmap."""
    text = bin(int.from_bytes(bits, "little") | 1 << len(bits) * 8)[:2:-1]
    return text[:count].encode().translate(_UNBITS)


_UNBITS: Final = bytes.maketrans(b"01", b"\x00\x01")


def _bits(column: Sequence[object]) -> bytes | None:
    if None not in column:
        return None
    return bits_of(bytes([each is not None for each in column]))


def _numbers(column: Sequence[int | None]) -> tuple[bytes | None, bytes | None]:
    present = [each for each in column if each is not None]
    if not present:
        return None, None
    if len(present) == len(column):
        return _little(array("q", present)), None
    return _little(array("q", [each or 0 for each in column])), bits_of(bytes([each is not None for each in column]))


def _join_numbers(parts: Sequence[tuple[int, bytes | None, bytes | None]]) -> tuple[bytes | None, bytes | None]:
    if all(column is None for _, column, _ in parts):
        return None, None
    data = b"".join(bytes(8 * count) if column is None else column for count, column, _ in parts)
    return data, _join_bits([(count, column is not None, bits) for count, column, bits in parts])


def _join_bits(parts: Sequence[tuple[int, bool, bytes | None]]) -> bytes | None:
    if all(present and bits is None for _, present, bits in parts):
        return None
    return bits_of(
        b"".join(
            (b"\x01" if present else b"\x00") * count if bits is None else flags_of(bits, count)
            for count, present, bits in parts
        )
    )


def _join_bytes(parts: Sequence[tuple[int, BytesColumn | BytesPieces | ByteStrings | None]]) -> BytesColumn:
    """A part without the column has empty strings."""
    data = b"".join(column.data for _, column in parts if column is not None)
    offsets = array("i", [0])
    for count, column in parts:
        begin = offsets[-1]
        if column is None:
            offsets.extend(repeat(begin, count))
        else:
            own = _native(column.offsets, "i")
            offsets.extend(own[1:] if begin == 0 else map(begin.__add__, own[1:]))
    return BytesColumn(_little(offsets), data)


def _little(numbers: array[int]) -> bytes:
    if _BIG_ENDIAN:
        numbers.byteswap()
    return numbers.tobytes()


def _native(raw: bytes, code: Literal["i", "q"]) -> array[int]:
    numbers = array(code, raw)
    if _BIG_ENDIAN:
        numbers.byteswap()
    return numbers


_BIG_ENDIAN: Final = struct.pack("=H", 1) != struct.pack("<H", 1)
__all__ = [
    "ByteStrings",
    "BytesColumn",
    "BytesPieces",
    "RecordColumns",
    "bits_of",
    "decode_headers",
    "encode_headers",
    "flags_of",
    "header_columns",
    "joined",
]
