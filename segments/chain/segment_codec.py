"""One segment as bytes: a row of a stream's node, or of a page beside it (docs/stream-formats.md draws it)."""

from __future__ import annotations

import struct
from typing import Final

from segments.chain.stream_segment import SegmentContents, StreamSegment

# number, ledger, start sequence number, created, epoch, completed, records, bytes, last entry, last record's entry
# and slot, first and last txid, first and last append time, least and greatest event time, footer's entry
ROW: Final = struct.Struct("<IqqqIqIqiiiqqqqqqi")
NONE: Final = -(2**63)
"""Stands for a number that is not there."""

PUBLISHED: Final = 1 << 31
"""In the field of the epoch: the segment was published whole. A node or a page with such a row has a format of its
own, which a program that would misread it refuses."""

_NO_ENTRY: Final = -1
"""Stands for an entry that is not there."""


def pack_segment(segment: StreamSegment) -> bytes:
    """The 116 bytes of a segment."""
    has = segment.contents
    entry, slot = (_NO_ENTRY, 0) if has.last is None else has.last
    return ROW.pack(
        segment.number,
        segment.ledger_id,
        segment.start_seq_no,
        segment.created_ms,
        segment.epoch | (PUBLISHED if segment.is_published else 0),
        stored(segment.completed_ms),
        has.records,
        has.bytes,
        has.last_entry,
        entry,
        slot,
        stored(has.first_txid),
        stored(has.last_txid),
        stored(has.first_append_ms),
        stored(has.last_append_ms),
        stored(has.min_event_ms),
        stored(has.max_event_ms),
        _NO_ENTRY if has.footer_entry is None else has.footer_entry,
    )


def unpack_segment(fields: tuple[int, ...]) -> StreamSegment:
    """The segment of a row's fields."""
    number, ledger_id, start, created, epoch, completed, records, size, last_entry, entry, slot, *rest, footer = fields
    return StreamSegment(
        number,
        ledger_id,
        start,
        created,
        epoch & ~PUBLISHED,
        read_back(completed),
        SegmentContents(
            records,
            size,
            last_entry,
            None if entry == _NO_ENTRY else (entry, slot),
            *_six(rest),
            None if footer == _NO_ENTRY else footer,
        ),
        bool(epoch & PUBLISHED),
    )


def stored(number: int | None) -> int:
    """A number, or what stands for none."""
    return NONE if number is None else number


def read_back(number: int) -> int | None:
    """The number, or none, of what was stored."""
    return None if number == NONE else number


def _six(numbers: list[int]) -> tuple[int | None, int | None, int | None, int | None, int | None, int | None]:
    a, b, c, d, e, f = map(read_back, numbers)
    return a, b, c, d, e, f
