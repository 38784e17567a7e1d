"""A segment topic log: streams of records, each a chain of ledgers of which the last one grows.

namespace, stream         connect, create, open; what an application holds (…_front: also behind gateways)
write, read, cursors      writers and producers, readers, places that outlive them
directory                 the names of a namespace's streams, and their settings
retention                 truncation, retention, holds, deletion
transfer, checks          export and import; verification and repair
remote, protocol, gateway streams of another process, through gRPC
sync                      the same for threads
position, record, seek    where records are, what they are, and how to name a place
config, errors, names     settings; every failure; what can be a name
entries, chain            the stored formats
producers                 what is remembered of idempotent producers

It may be imported before pytest looks at it (PYTEST_DONT_REWRITE).
"""

from __future__ import annotations

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
from segments.cursors import Cursor
from segments.entries import Compression, RecordColumns
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
    TxidOrderError,
    UnsupportedStreamFormatError,
)
from segments.namespace import StreamNamespace, connect
from segments.position import EARLIEST, LATEST, Position
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
    "TxidOrderError",
    "UnsupportedStreamFormatError",
    "Writer",
    "connect",
    "parse_seek",
]
