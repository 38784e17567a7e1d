"""An entry of a segment's ledger as bytes. Encoding joins columns; nothing is done per record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.codec import crc32c
from segments.codec import entry_of_values
from segments.entries.columns import BytesPieces, ByteStrings, RecordColumns
from segments.entries.compression import Compression
from segments.entries.compression import compress as compress_body
from segments.entries.layout import (
    BATCH,
    BODY_MAX,
    CRC,
    CRC_AT,
    HEADER,
    MAGIC,
    NO_SNAPSHOT,
    ONE_BATCH,
    PIECE,
    VERSION,
    BatchFlag,
    Columns,
    EntryKind,
    padded,
)
from segments.entries.sections import EntryBatch
from segments.errors import RecordTooLargeError

_PIECE_MAX: Final = BODY_MAX - PIECE.size
_EASY: Final = 64 * 1024
"""A value of up to so many bytes is copied once more, where that costs less than a call."""
_GATHERED_MAX: Final = BODY_MAX // 2
"""Values that fit into an entry for certain, with their offsets: a writer's group has fewer."""
_ZEROS: Final = tuple(bytes(n) for n in range(8))


def encode_entry(
    columns: RecordColumns,
    *,
    first_seq_no: int,
    append_ms: int,
    batches: Sequence[EntryBatch] = (),
    snapshot_entry: int = NO_SNAPSHOT,
    compression: Compression = Compression.NONE,
) -> bytes:
    """The bytes of one entry with these records.

    ``batches`` says which records belong together, and to which producer; without it all are one batch without a
    producer. ``snapshot_entry`` is the entry of the last snapshot of producers in the same ledger.

    Raises:
        RecordTooLargeError: they do not fit into one entry: use ``encode_pieces``, or fewer records.
    """
    if not (batches or compression) and columns.is_plain:
        values = columns.values
        if columns.count == 1 and values.size <= _EASY:
            return _lone_entry(values.data, first_seq_no, append_ms, snapshot_entry)
        if isinstance(values, ByteStrings) and values.size <= _GATHERED_MAX:
            return _gathered_entry(values, first_seq_no, append_ms, snapshot_entry)
    flags, parts, size = _body(columns, batches)
    if size > BODY_MAX:
        raise RecordTooLargeError(
            f"{counted(columns.count, 'record')} of {size} bytes do not fit into an entry of {BODY_MAX}"
        )
    return _entry(
        EntryKind.DATA,
        parts,
        size,
        flags=flags,
        records=columns.count,
        batches=max(1, len(batches)),
        first_seq_no=first_seq_no,
        append_ms=append_ms,
        snapshot_entry=snapshot_entry,
        compression=compression,
    )


def _lone_entry(value: bytes, first_seq_no: int, append_ms: int, snapshot_entry: int) -> bytes:
    """The same bytes for one record with a value and nothing else, as a writer makes them that waits for each."""
    size = len(value)
    zeros = _ZEROS[-size & 7]
    stored = ONE_BATCH.size + size + len(zeros)
    header = HEADER.pack(
        MAGIC, VERSION, EntryKind.DATA, 0, 0, 1, 1, first_seq_no, append_ms, snapshot_entry, stored, stored, 0
    )[:CRC_AT]
    body = b"".join((ONE_BATCH.pack(1, 0, 0, 0, 0, 0, size), value, zeros))
    return b"".join((header, CRC.pack(crc32c(body, crc32c(header))), body))


def _gathered_entry(values: ByteStrings, first_seq_no: int, append_ms: int, snapshot_entry: int) -> bytes:
    """The same bytes for records with a value and nothing else, as a busy writer makes them."""
    count = len(values.strings)
    stored = BATCH.size + padded(4 * (count + 1)) + padded(values.size)
    header = HEADER.pack(
        MAGIC, VERSION, EntryKind.DATA, 0, 0, count, 1, first_seq_no, append_ms, snapshot_entry, stored, stored, 0
    )
    return entry_of_values(header, BATCH.pack(count, 0, 0, 0, 0), values.strings)


def fits_one_entry(columns: RecordColumns, batches: Sequence[EntryBatch] = ()) -> bool:
    """Whether ``encode_entry`` takes them."""
    return _body(columns, batches)[2] <= BODY_MAX


def encode_pieces(
    columns: RecordColumns,
    *,
    first_seq_no: int,
    append_ms: int,
    batches: Sequence[EntryBatch] = (),
    snapshot_entry: int = NO_SNAPSHOT,
    compression: Compression = Compression.NONE,
) -> list[bytes]:
    """The bytes of entries, to be written one directly after the other, that together hold these records.

    The records stand at the last entry. Without all of them there are no records.
    """
    flags, parts, size = _body(columns, batches)
    body = b"".join(parts)
    pieces = range(0, size, _PIECE_MAX)
    return [
        _entry(
            EntryKind.PIECE,
            [PIECE.pack(number, len(pieces), size), piece := body[begin : begin + _PIECE_MAX]],
            PIECE.size + len(piece),
            flags=flags,
            records=columns.count if number == len(pieces) - 1 else 0,
            batches=max(1, len(batches)),
            first_seq_no=first_seq_no,
            append_ms=append_ms,
            snapshot_entry=snapshot_entry,
            compression=compression,
        )
        for number, begin in enumerate(pieces)
    ]


def encode_payload(
    kind: EntryKind,
    payload: bytes,
    *,
    next_seq_no: int,
    append_ms: int,
    snapshot_entry: int = NO_SNAPSHOT,
    compression: Compression = Compression.NONE,
) -> bytes:
    """The bytes of an entry without records: a snapshot of producers, a footer, or a control entry.

    ``next_seq_no`` is the sequence number of the next record.

    Raises:
        RecordTooLargeError: the payload does not fit into one entry.
    """
    if len(payload) > BODY_MAX:
        raise RecordTooLargeError(f"{len(payload)} bytes do not fit into an entry of {BODY_MAX}")
    return _entry(
        kind,
        [payload],
        len(payload),
        flags=0,
        records=0,
        batches=0,
        first_seq_no=next_seq_no,
        append_ms=append_ms,
        snapshot_entry=snapshot_entry,
        compression=compression,
    )


def _entry(
    kind: EntryKind,
    parts: Sequence[bytes | memoryview],
    size: int,
    *,
    flags: int,
    records: int,
    batches: int,
    first_seq_no: int,
    append_ms: int,
    snapshot_entry: int,
    compression: Compression,
) -> bytes:
    stored = size
    if compression:
        packed = compress_body(compression, b"".join(parts))
        if len(packed) < size:
            parts, stored = [packed], len(packed)
        else:
            compression = Compression.NONE
    header = HEADER.pack(
        MAGIC,
        VERSION,
        kind,
        compression,
        flags,
        records,
        batches,
        first_seq_no,
        append_ms,
        snapshot_entry,
        size,
        stored,
        0,
    )
    crc = crc32c(header[:CRC_AT])
    for part in parts:
        crc = crc32c(part, crc)
    return b"".join((header[:CRC_AT], CRC.pack(crc), *parts))


def _body(columns: RecordColumns, batches: Sequence[EntryBatch]) -> tuple[int, list[bytes | memoryview], int]:
    """Flags, parts and size of a body."""
    parts: list[bytes | memoryview] = []
    names: list[bytes] = []
    for batch in batches or (EntryBatch(columns.count),):
        name = b"" if batch.producer is None else batch.producer.encode()
        flags = 0 if batch.producer is None else BatchFlag.PRODUCER
        parts.append(BATCH.pack(batch.records, len(name), flags, batch.epoch, batch.first_sequence))
        names.append(name)
    _pad(parts, names)
    _pad(parts, (columns.values.offsets,))
    _pad(parts, columns.values.pieces if isinstance(columns.values, BytesPieces) else (columns.values.data,))
    used = 0
    if columns.keys is not None:
        used |= Columns.KEYS
        _pad(parts, (columns.keys.offsets,))
        _pad(parts, (columns.keys.data,))
        if columns.key_bits is not None:
            used |= Columns.KEY_NULLS
            _pad(parts, (columns.key_bits,))
    if columns.txids is not None:
        used |= Columns.TXIDS
        parts.append(columns.txids)
        if columns.txid_bits is not None:
            used |= Columns.TXID_NULLS
            _pad(parts, (columns.txid_bits,))
    if columns.events is not None:
        used |= Columns.EVENTS
        parts.append(columns.events)
        if columns.event_bits is not None:
            used |= Columns.EVENT_NULLS
            _pad(parts, (columns.event_bits,))
    if columns.headers is not None:
        used |= Columns.HEADERS
        _pad(parts, (columns.headers.offsets,))
        _pad(parts, (columns.headers.data,))
    return used, parts, sum(map(len, parts))


def _pad(parts: list[bytes | memoryview], section: Sequence[bytes | memoryview]) -> None:
    parts += section
    size = sum(map(len, section))
    if missing := padded(size) - size:
        parts.append(_ZEROS[missing])
