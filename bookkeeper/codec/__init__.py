"""The hot path's codec: stateless, whole runs at a time. Wire adds in, disk records and replies out, and back.

The compiled codec is used where it was built, the Python one elsewhere; ``BK_CODEC=pure`` in the environment
forces the latter. Both give the same results, byte for byte.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bookkeeper.codec.pure import fail_acks
from bookkeeper.codec.shapes import (
    ENTRY_HEADER,
    FRAME_MAX,
    KEY_SIZE,
    LAC_BODY_MAX,
    NO_LAC,
    READS_MAX,
    RECORD_HEADER,
    RECORD_MAX,
    STREAM_SHIFT,
    Adds,
    Answers,
    Dialect,
    Digest,
    Entries,
    LedgerRuns,
    Packed,
    ReadReplies,
    Reads,
    Replies,
    ReplyRun,
    Run,
    Scan,
    ScannedRun,
    Stop,
)

IMPLEMENTATION: str
"""``"native"`` or ``"pure"``."""

if TYPE_CHECKING or os.environ.get("BK_CODEC") == "pure":
    from bookkeeper.codec import pure as _codec

    IMPLEMENTATION = "pure"
else:
    try:
        from bookkeeper.codec import native as _codec

        IMPLEMENTATION = "native"
    except ImportError:
        from bookkeeper.codec import pure as _codec

        IMPLEMENTATION = "pure"

crc32c = _codec.crc32c
split_adds = _codec.split_adds
encode_adds = _codec.encode_adds
encode_recovery_adds = _codec.encode_recovery_adds
split_add_replies = _codec.split_add_replies
gather = _codec.gather
record = _codec.record
read_record = _codec.read_record
pack_entries = _codec.pack_entries
split_entries = _codec.split_entries
scan_records = _codec.scan_records
find_record = _codec.find_record
chain_crcs = _codec.chain_crcs
record_places = _codec.record_places
scatter = _codec.scatter
ledger_runs = _codec.ledger_runs
ascending = _codec.ascending
unbroken = _codec.unbroken
encode_reads = _codec.encode_reads
split_reads = _codec.split_reads
answer_reads = _codec.answer_reads
split_read_replies = _codec.split_read_replies
unseal_replies = _codec.unseal_replies

__all__ = [
    "ENTRY_HEADER",
    "FRAME_MAX",
    "IMPLEMENTATION",
    "KEY_SIZE",
    "LAC_BODY_MAX",
    "NO_LAC",
    "READS_MAX",
    "RECORD_HEADER",
    "RECORD_MAX",
    "STREAM_SHIFT",
    "Adds",
    "Answers",
    "Dialect",
    "Digest",
    "Entries",
    "LedgerRuns",
    "Packed",
    "ReadReplies",
    "Reads",
    "Replies",
    "ReplyRun",
    "Run",
    "Scan",
    "ScannedRun",
    "Stop",
    "answer_reads",
    "ascending",
    "chain_crcs",
    "crc32c",
    "encode_adds",
    "encode_reads",
    "encode_recovery_adds",
    "fail_acks",
    "find_record",
    "gather",
    "ledger_runs",
    "pack_entries",
    "read_record",
    "record",
    "record_places",
    "scan_records",
    "scatter",
    "split_add_replies",
    "split_adds",
    "split_entries",
    "split_read_replies",
    "split_reads",
    "unbroken",
    "unseal_replies",
]
