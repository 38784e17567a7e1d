"""What a record must be before a writer takes it, so that no record spoils the entry that it shares with others."""

from __future__ import annotations

from typing import Final

from segments.record import Record, to_ms

INT64_MIN: Final = -(2**63)
TXID_MAX: Final = 2**63 - 2
"""One less than a number of 64 bits may be: readers look for the next greater one."""
HEADERS_MAX: Final = 0xFFFF
"""Headers of a record, and bytes of a header's name."""


def checked(record: Record | bytes | bytearray | memoryview, txid: int | None) -> Record | bytes:
    """The record as something that nobody can change any more.

    Raises:
        TypeError: it is not bytes, or no record of bytes. ValueError: an event time has no zone, or a header is too
        long. OverflowError: a number does not fit into 64 bits.
    """
    if isinstance(record, Record):
        if txid is not None:
            record = Record(record.value, txid, record.key, record.headers, record.event_time)
        if record.headers:  # the caller may fill the same ones for its next record
            record = Record(record.value, record.txid, record.key, dict(record.headers), record.event_time)
        _check(record)
        return record
    if txid is not None:
        _check_number(txid)
    if type(record) is bytes:
        return record
    if isinstance(record, bytes | bytearray | memoryview):
        return bytes(record)
    raise TypeError(f"a record must be bytes or a Record, not {type(record).__name__}")


def _check(record: Record) -> None:
    if type(record.value) is not bytes:
        raise TypeError(f"a record's value must be bytes, not {type(record.value).__name__}")
    if record.key is not None and type(record.key) is not bytes:
        raise TypeError(f"a record's key must be bytes, not {type(record.key).__name__}")
    if record.txid is not None:
        _check_number(record.txid)
    if record.event_time is not None:
        to_ms(record.event_time)
    if record.headers:
        if len(record.headers) > HEADERS_MAX:
            raise ValueError(f"a record has at most {HEADERS_MAX} headers, and this has {len(record.headers)}")
        for name, value in record.headers.items():
            if not isinstance(name, str) or type(value) is not bytes:
                raise TypeError(f"headers map str to bytes, not {type(name).__name__} to {type(value).__name__}")
            if len(name.encode()) > HEADERS_MAX:
                raise ValueError(f"a header's name has at most {HEADERS_MAX} bytes")


def _check_number(txid: int) -> None:
    if not isinstance(txid, int):
        raise TypeError(f"a transaction id must be a whole number, not {type(txid).__name__}")
    if not INT64_MIN <= txid <= TXID_MAX:
        raise OverflowError(f"a transaction id goes from -2**63 to 2**63 - 2, and {txid} does not")


def record_size(record: Record | bytes) -> int:
    """The bytes that it takes in an entry, about."""
    if type(record) is bytes:
        return len(record)
    assert isinstance(record, Record)
    size = len(record.value) + 24
    if record.key is not None:
        size += len(record.key) + 4
    for name, value in record.headers.items():
        size += len(name) * 2 + len(value) + 8
    return size
