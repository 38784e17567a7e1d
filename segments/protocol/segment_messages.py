"""Segments as messages of the protocol, and back. Pure."""

from __future__ import annotations

from typing import Any

from segments.chain import SegmentContents, StreamSegment
from segments.position import Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import put_position


def put_segment(segment: StreamSegment) -> pb.SegmentInfo:
    """The message of a segment."""
    contents = segment.contents
    return pb.SegmentInfo(
        number=segment.number,
        ledger_id=segment.ledger_id,
        completed=not segment.is_open,
        start_seq_no=segment.start_seq_no,
        records=segment.records,
        bytes=segment.bytes,
        created_ms=segment.created_ms,
        completed_ms=segment.completed_ms,
        first_txid=contents.first_txid,
        last_txid=contents.last_txid,
        last=None if contents.last is None else put_position(Position(segment.number, *contents.last)),
        last_entry=contents.last_entry,
        epoch=segment.epoch,
        first_append_ms=contents.first_append_ms,
        last_append_ms=contents.last_append_ms,
        min_event_ms=contents.min_event_ms,
        max_event_ms=contents.max_event_ms,
        footer_entry=contents.footer_entry,
    )


def get_segment(message: pb.SegmentInfo) -> StreamSegment:
    """The segment in a message. An older gateway tells less of what it holds."""
    last = (message.last.entry, message.last.slot) if message.HasField("last") else None
    last_entry = last[0] if last else -1
    contents = SegmentContents(
        records=message.records,
        bytes=message.bytes,
        last_entry=message.last_entry if message.HasField("last_entry") else last_entry,
        last=last,
        first_txid=optional(message, "first_txid"),
        last_txid=optional(message, "last_txid"),
        first_append_ms=optional(message, "first_append_ms"),
        last_append_ms=optional(message, "last_append_ms"),
        min_event_ms=optional(message, "min_event_ms"),
        max_event_ms=optional(message, "max_event_ms"),
        footer_entry=optional(message, "footer_entry"),
    )
    return StreamSegment(
        message.number,
        message.ledger_id,
        message.start_seq_no,
        message.created_ms,
        message.epoch,
        completed_ms=message.completed_ms if message.completed else None,
        contents=contents,
    )


def optional(message: Any, field: str) -> Any:
    """The value of a field that need not be there; None if it is not."""
    return getattr(message, field) if message.HasField(field) else None
