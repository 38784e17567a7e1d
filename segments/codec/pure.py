"""Runs of lone entries, in Python. The layout of an entry is that of :mod:`segments.entries.layout`."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

from bookkeeper.codec import crc32c

_HEAD: Final = struct.Struct("<3sBBBHIIqqqII4xIIHHqqii")
"""The header, the one batch without a producer's name, and the offsets of the one value."""
_CRC_AT: Final = 52
_HEADER_SIZE: Final = 56
_BATCH_SIZE: Final = 24
_DATA: Final = 1
_LARGEST: Final = 2**31 - 1
_new: Final[Any] = tuple.__new__


def count_lone(payloads: list[bytes], at: int, seq_no: int) -> tuple[int, int]:
    """How many payloads from ``at`` on are lone entries, whole, with the right checksum, and with sequence numbers that
    rise by one from ``seq_no`` on; a negative one stands for any. Whatever is unusual ends the run.

    Returns:
        Their number, and the sequence number of the first.
    """
    count, first = 0, seq_no
    while 0 <= at < len(payloads) - count:
        found = _seq_no(payloads[at + count])
        if found < 0 or (found != first + count if count else 0 <= seq_no != found):
            break
        if not count:
            first = found
        count += 1
    return count, first


def _seq_no(payload: bytes) -> int:
    """The number of the one record; -1: it is no lone entry, or damaged."""
    if not isinstance(payload, bytes) or len(payload) < _HEAD.size:
        return -1
    (
        magic,
        version,
        kind,
        codec,
        flags,
        records,
        batches,
        seq_no,
        _,
        _,
        size,
        stored,
        crc,
        number,
        name,
        own,
        _,
        _,
        *at,
    ) = _HEAD.unpack_from(payload)
    if (magic, version, kind, codec, flags, records, batches) != (b"BKS", 1, _DATA, 0, 0, 1, 1):
        return -1
    begin, end = at
    if size != stored or stored != len(payload) - _HEADER_SIZE or (number, name, own, begin) != (1, 0, 0, 0) or end < 0:
        return -1
    if _HEAD.size + ((end + 7) & ~7) != len(payload) or seq_no < 0:
        return -1
    view = memoryview(payload)
    return seq_no if crc32c(view[_HEADER_SIZE:], crc32c(view[:_CRC_AT])) == crc else -1


def _values(payloads: list[bytes], a: int, b: int) -> list[bytes]:
    if not 0 <= a <= b <= len(payloads):
        raise ValueError(f"entries {a} to {b} of {len(payloads)}")
    values = []
    for payload in payloads[a:b]:
        if not isinstance(payload, bytes) or len(payload) < _HEAD.size:
            raise ValueError("no lone entry")
        end = int.from_bytes(payload[_HEAD.size - 4 : _HEAD.size], "little", signed=True)
        if not 0 <= end <= len(payload) - _HEAD.size:
            raise ValueError("no lone entry")
        values.append(payload[_HEAD.size : _HEAD.size + end])
    return values


def lone_values(payloads: list[bytes], a: int, b: int) -> list[bytes]:
    """The values of the lone entries from ``a`` up to, and not including, ``b``.

    Raises:
        ValueError: there are not so many, or one has no value; ``count_lone`` has not seen it.
    """
    return _values(payloads, a, b)


def lone_records(
    payloads: list[bytes], a: int, b: int, first: tuple[int, int, int], record: type, place: type, no_headers: object
) -> list[Any]:
    """The records of the lone entries from ``a`` up to, and not including, ``b``.

    Args:
        first: segment, entry and sequence number of ``payloads[0]``; entries and numbers rise by one.
        record: the class of the records, named tuples of (position, sequence number, value, None, None, ``no_headers``,
            None, time of the append, None).
        place: the class of their positions, named tuples of (segment, entry, 0).

    Raises:
        ValueError: as lone_values.
    """
    segment, entry, seq_no = first
    return [
        _new(
            record,
            (_new(place, (segment, entry + n, 0)), seq_no + n, value, None, None, no_headers, None, append_ms, None),
        )
        for n, (value, append_ms) in enumerate(zip(_values(payloads, a, b), _append_ms(payloads, a, b), strict=True), a)
    ]


def lone_columns(payloads: list[bytes], a: int, b: int) -> tuple[bytes, bytes, bytes]:
    """The values of the lone entries from ``a`` up to, and not including, ``b`` as columns: offsets (32 bits each, one
    more than values), the values one behind the other, and the times of the appends (64 bits each).

    Raises:
        ValueError: as lone_values, or the values have more than 2 GiB together.
    """
    values = _values(payloads, a, b)
    if sum(map(len, values)) > _LARGEST:
        raise ValueError("more than 2 GiB of values")
    offsets = array("i", accumulate(map(len, values), initial=0))
    return offsets.tobytes(), b"".join(values), array("q", _append_ms(payloads, a, b)).tobytes()


def rising(first: int, n: int) -> bytes:
    """``n`` integers of 64 bits as a column, each one more than the one before.

    Raises:
        OverflowError: they do not fit.
    """
    return array("q", range(first, first + n)).tobytes()


def repeated(value: int, n: int) -> bytes:
    """``n`` times the same integer of 64 bits, as a column.

    Raises:
        OverflowError: it does not fit.
    """
    return array("q", [value]).tobytes() * n


def entry_of_values(header: bytes, batch: bytes, values: list[bytes]) -> bytes:
    """The bytes of an entry of values: its header and checksum, its one batch without a name, the offsets of the
    values, and the values.

    Args:
        header: 56 bytes that say how large the body is; the last four, the checksum's, do not matter.
        batch: 24 bytes.

    Raises:
        ValueError: header or batch have another size, or the values have more than 2 GiB together.
        TypeError: a value is not bytes.
    """
    if len(header) != _HEADER_SIZE or len(batch) != _BATCH_SIZE:
        raise ValueError(f"a header of {len(header)} bytes and a batch of {len(batch)}")
    if any(not isinstance(value, bytes) for value in values):
        raise TypeError("a value is not bytes")
    total = sum(map(len, values))
    if total > _LARGEST:
        raise ValueError("more than 2 GiB of values")
    offsets = array("i", accumulate(map(len, values), initial=0)).tobytes()
    body = b"".join((batch, offsets, bytes(-len(offsets) & 7), *values, bytes(-total & 7)))
    crc = crc32c(body, crc32c(header[:_CRC_AT]))
    return b"".join((header[:_CRC_AT], crc.to_bytes(4, "little"), body))


def append_results(
    records: int, segment: int, entry: int, seq_no: int, txids: Sequence[int | None] | None, place: type, result: type
) -> list[Any]:
    """What the appends of an entry's records return, each a named tuple of (position, position, sequence number,
    transaction id, False).

    Args:
        seq_no: the number of the first record.
        txids: one for each record; None: they have none.
        place: the class of positions, named tuples of (segment, entry, slot).
        result: the class of the results.

    Raises:
        ValueError: there is not one transaction id for each record.
    """
    each = [None] * records if txids is None else txids
    if len(each) != records:
        raise ValueError(f"{len(each)} transaction ids for {records} records")
    return [
        _new(result, (where := _new(place, (segment, entry, n)), where, seq_no + n, txid, False))
        for n, txid in enumerate(each)
    ]


def _append_ms(payloads: Sequence[bytes], a: int, b: int) -> list[int]:
    return [int.from_bytes(payload[24:32], "little", signed=True) for payload in payloads[a:b]]
