"""A segment topic log: streams of records, each a chain of ledgers of which the last one grows.

namespace, stream         connect, create, open; what an application holds (…_front: also behind gateways)
write, read, cursors      writers and producers, readers, positions that outlive them
directory                 the names of a namespace's streams, and their settings
retention                 truncation, retention, holds, deletion
transfer, checks          export and import; verification and repair
remote, protocol, gateway streams of another process, through gRPC
namespace_front, stream_front, closing
                          what both sides have in common
sync                      the same for threads
position, record, seek    where records stand, what they are, and how to name a position
position_format           a position as bytes and text
config, errors, names     settings; every failure; what can be a name
stream_settings           a stream's settings where they are stored
arguments, error_translation
                          refused arguments; BookKeeper's errors as those of streams
entries, chain            the stored formats
producers                 what is remembered of idempotent producers

It may be imported before pytest looks at it (PYTEST_DONT_REWRITE).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bookkeeper.outcome import Outcome
    from segments.chain import StreamSegment, StreamSegmentState
    from segments.checks.checker import CheckOptions
    from segments.checks.findings import Finding
    from segments.config import (
        FlushPolicy,
        ProducerPolicy,
        RollPolicy,
        StreamConfig,
        StreamLimits,
        StreamRetention,
    )
    from segments.cursors.cursor import Cursor
    from segments.entries.columns import RecordColumns
    from segments.entries.compression import Compression
    from segments.errors import (
        AppendOutcomeUnknownError,
        BatchRefusedError,
        ChainCorruptError,
        ChainStepError,
        CursorConflictError,
        CursorExistsError,
        CursorFullError,
        CursorNotFoundError,
        CursorVersionError,
        EntryCorruptError,
        GatewayRedirectError,
        GatewayTooOldError,
        HoldExistsError,
        HoldNotFoundError,
        MissingLibraryError,
        OwnershipLostError,
        PositionFormatError,
        PositionTruncatedError,
        ProducerFencedError,
        ReaderIdleError,
        RecordTooLargeError,
        SeekFormatError,
        SegmentEmptyError,
        SequenceGapError,
        SequenceTooOldError,
        StreamAccessError,
        StreamClosedError,
        StreamConfigError,
        StreamCorruptError,
        StreamError,
        StreamExistsError,
        StreamGapError,
        StreamHeldError,
        StreamInvariantError,
        StreamMetadataError,
        StreamNameError,
        StreamNotFoundError,
        StreamNotReadyError,
        StreamOverloadedError,
        StreamOwnedError,
        StreamSealedError,
        StreamUnavailableError,
        TailMovedError,
        TooManyCursorsError,
        TooManyStreamsError,
        TxidOrderError,
        UnsupportedStreamFormatError,
    )
    from segments.namespace import StreamNamespace, connect
    from segments.position import EARLIEST, LATEST, Position
    from segments.position_format import decode_position, encode_position
    from segments.publish import BatchKey, PublishedBatch, StagedRows, StagedWriter, StreamPublisher
    from segments.read import Reader, RecordBatch
    from segments.record import AppendResult, Gap, GapKind, ProducerRef, Record, StoredRecord
    from segments.retention.holds import Hold
    from segments.seek import Ago, AtCursor, AtSeqNo, AtTime, AtTxId, Seek, parse_seek
    from segments.stream import Stream
    from segments.write import Producer, Writer

__all__ = [
    "EARLIEST",
    "LATEST",
    "Ago",
    "AppendOutcomeUnknownError",
    "AppendResult",
    "AtCursor",
    "AtSeqNo",
    "AtTime",
    "AtTxId",
    "BatchKey",
    "BatchRefusedError",
    "ChainCorruptError",
    "ChainStepError",
    "CheckOptions",
    "Compression",
    "Cursor",
    "CursorConflictError",
    "CursorExistsError",
    "CursorFullError",
    "CursorNotFoundError",
    "CursorVersionError",
    "EntryCorruptError",
    "Finding",
    "FlushPolicy",
    "Gap",
    "GapKind",
    "GatewayRedirectError",
    "GatewayTooOldError",
    "Hold",
    "HoldExistsError",
    "HoldNotFoundError",
    "MissingLibraryError",
    "Outcome",
    "OwnershipLostError",
    "Position",
    "PositionFormatError",
    "PositionTruncatedError",
    "Producer",
    "ProducerFencedError",
    "ProducerPolicy",
    "ProducerRef",
    "PublishedBatch",
    "Reader",
    "ReaderIdleError",
    "Record",
    "RecordBatch",
    "RecordColumns",
    "RecordTooLargeError",
    "RollPolicy",
    "Seek",
    "SeekFormatError",
    "SegmentEmptyError",
    "SequenceGapError",
    "SequenceTooOldError",
    "StagedRows",
    "StagedWriter",
    "StoredRecord",
    "Stream",
    "StreamAccessError",
    "StreamClosedError",
    "StreamConfig",
    "StreamConfigError",
    "StreamCorruptError",
    "StreamError",
    "StreamExistsError",
    "StreamGapError",
    "StreamHeldError",
    "StreamInvariantError",
    "StreamLimits",
    "StreamMetadataError",
    "StreamNameError",
    "StreamNamespace",
    "StreamNotFoundError",
    "StreamNotReadyError",
    "StreamOverloadedError",
    "StreamOwnedError",
    "StreamPublisher",
    "StreamRetention",
    "StreamSealedError",
    "StreamSegment",
    "StreamSegmentState",
    "StreamUnavailableError",
    "TailMovedError",
    "TooManyCursorsError",
    "TooManyStreamsError",
    "TxidOrderError",
    "UnsupportedStreamFormatError",
    "Writer",
    "connect",
    "decode_position",
    "encode_position",
    "parse_seek",
]

_HOME = {
    "Ago": "segments.seek",
    "AppendOutcomeUnknownError": "segments.errors",
    "AppendResult": "segments.record",
    "AtCursor": "segments.seek",
    "AtSeqNo": "segments.seek",
    "AtTime": "segments.seek",
    "AtTxId": "segments.seek",
    "BatchKey": "segments.publish",
    "BatchRefusedError": "segments.errors",
    "ChainCorruptError": "segments.errors",
    "ChainStepError": "segments.errors",
    "CheckOptions": "segments.checks.checker",
    "Compression": "segments.entries.compression",
    "connect": "segments.namespace",
    "Cursor": "segments.cursors.cursor",
    "CursorConflictError": "segments.errors",
    "CursorExistsError": "segments.errors",
    "CursorFullError": "segments.errors",
    "CursorNotFoundError": "segments.errors",
    "CursorVersionError": "segments.errors",
    "EARLIEST": "segments.position",
    "EntryCorruptError": "segments.errors",
    "decode_position": "segments.position_format",
    "encode_position": "segments.position_format",
    "Finding": "segments.checks.findings",
    "FlushPolicy": "segments.config",
    "Gap": "segments.record",
    "GapKind": "segments.record",
    "GatewayRedirectError": "segments.errors",
    "GatewayTooOldError": "segments.errors",
    "Hold": "segments.retention.holds",
    "HoldExistsError": "segments.errors",
    "HoldNotFoundError": "segments.errors",
    "LATEST": "segments.position",
    "MissingLibraryError": "segments.errors",
    "Outcome": "bookkeeper.outcome",
    "OwnershipLostError": "segments.errors",
    "parse_seek": "segments.seek",
    "Position": "segments.position",
    "PositionFormatError": "segments.errors",
    "PositionTruncatedError": "segments.errors",
    "Producer": "segments.write",
    "ProducerFencedError": "segments.errors",
    "ProducerPolicy": "segments.config",
    "ProducerRef": "segments.record",
    "PublishedBatch": "segments.publish",
    "Reader": "segments.read",
    "ReaderIdleError": "segments.errors",
    "Record": "segments.record",
    "RecordBatch": "segments.read",
    "RecordColumns": "segments.entries.columns",
    "RecordTooLargeError": "segments.errors",
    "RollPolicy": "segments.config",
    "Seek": "segments.seek",
    "SeekFormatError": "segments.errors",
    "SegmentEmptyError": "segments.errors",
    "SequenceGapError": "segments.errors",
    "SequenceTooOldError": "segments.errors",
    "StagedRows": "segments.publish",
    "StagedWriter": "segments.publish",
    "StoredRecord": "segments.record",
    "Stream": "segments.stream",
    "StreamAccessError": "segments.errors",
    "StreamClosedError": "segments.errors",
    "StreamConfig": "segments.config",
    "StreamConfigError": "segments.errors",
    "StreamCorruptError": "segments.errors",
    "StreamError": "segments.errors",
    "StreamExistsError": "segments.errors",
    "StreamGapError": "segments.errors",
    "StreamHeldError": "segments.errors",
    "StreamInvariantError": "segments.errors",
    "StreamLimits": "segments.config",
    "StreamMetadataError": "segments.errors",
    "StreamNameError": "segments.errors",
    "StreamNamespace": "segments.namespace",
    "StreamNotFoundError": "segments.errors",
    "StreamNotReadyError": "segments.errors",
    "StreamOverloadedError": "segments.errors",
    "StreamOwnedError": "segments.errors",
    "StreamPublisher": "segments.publish",
    "StreamRetention": "segments.config",
    "StreamSealedError": "segments.errors",
    "StreamSegment": "segments.chain",
    "StreamSegmentState": "segments.chain",
    "StreamUnavailableError": "segments.errors",
    "TailMovedError": "segments.errors",
    "TooManyCursorsError": "segments.errors",
    "TooManyStreamsError": "segments.errors",
    "TxidOrderError": "segments.errors",
    "UnsupportedStreamFormatError": "segments.errors",
    "Writer": "segments.write",
}
"""Exported name -> the module it lives in."""


def __getattr__(name: str) -> object:
    """Import on first use: a process that only reads pays for nothing else."""
    if (home := _HOME.get(name)) is None:
        raise AttributeError(f"module 'segments' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
