"""Batches that are published, as messages of the protocol, and back. Pure."""

from __future__ import annotations

from segments.chain import StreamSegment
from segments.protocol import segments_pb2 as pb
from segments.protocol.segment_messages import get_segment, optional, put_segment
from segments.publish import BatchKey, PublishedBatch, StagedLedger, StagedRows


def put_key(key: BatchKey) -> pb.BatchKey:
    """The message of what a batch is known by."""
    return pb.BatchKey(app=key.app, query=key.query, batch=key.batch, start=key.start, run=key.run)


def get_key(message: pb.BatchKey) -> BatchKey:
    """What a batch is known by."""
    return BatchKey(message.app, message.query, message.batch, optional(message, "start"), message.run)


def put_rows(rows: StagedRows) -> pb.StagedRows:
    """The message of the rows of one task."""
    ledger = None
    if rows.ledger is not None:
        segment = StreamSegment(0, rows.ledger.ledger_id, 0, 0, completed_ms=0, contents=rows.ledger.contents)
        ledger = put_segment(segment)
    return pb.StagedRows(
        staging=rows.staging, stream_id=rows.stream_id, records=rows.records, ledger=ledger, entries=rows.entries
    )


def get_rows(message: pb.StagedRows) -> StagedRows:
    """The rows of one task."""
    ledger = None
    if message.HasField("ledger"):
        ledger = StagedLedger(message.ledger.ledger_id, get_segment(message.ledger).contents)
    return StagedRows(message.staging, message.stream_id, message.records, ledger, tuple(message.entries))


def put_published(done: PublishedBatch) -> pb.PublishReply:
    """The message of what became of a batch."""
    return pb.PublishReply(
        number=done.number, records=done.records, first_seq_no=done.first_seq_no, already_there=done.already_there
    )


def get_published(message: pb.PublishReply) -> PublishedBatch:
    """What became of a batch."""
    return PublishedBatch(message.number, message.records, message.first_seq_no, message.already_there)
