"""A stream's record and its legal steps.

stream_chain    the record and its transitions
stream_segment  one segment
chain_codec     the record as bytes
stream_record   the record at its path, changed by compare-and-set
tags            the custom metadata of a stream's ledgers
"""

from __future__ import annotations

from segments.chain.chain_codec import decode_chain, encode_chain
from segments.chain.stream_chain import SEGMENTS_MAX, RemovedLedger, StreamChain
from segments.chain.stream_record import StreamRecord
from segments.chain.stream_segment import NO_CONTENTS, SegmentContents, StreamSegment, StreamSegmentState
from segments.chain.tags import COMPONENT_TAGS, ledger_tags, stream_tags

__all__ = [
    "COMPONENT_TAGS",
    "NO_CONTENTS",
    "SEGMENTS_MAX",
    "RemovedLedger",
    "SegmentContents",
    "StreamChain",
    "StreamRecord",
    "StreamSegment",
    "StreamSegmentState",
    "decode_chain",
    "encode_chain",
    "ledger_tags",
    "stream_tags",
]
