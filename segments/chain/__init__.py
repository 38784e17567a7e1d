"""A stream's node and its legal steps.

stream_chain    the node and its transitions
stream_segment  one segment
segment_page    older segments, in pages beside the node
chain_rules     what must hold of every version
chain_codec     the node as bytes
segment_codec   one segment as bytes
stream_head     the chain at its path, changed by compare-and-set
stream_pages    the pages where they are stored
tags            the custom metadata of a stream's ledgers
"""

from __future__ import annotations

from segments.chain.chain_codec import decode_chain, encode_chain
from segments.chain.segment_page import PAGE_SEGMENTS, SegmentList, SegmentPage
from segments.chain.stream_chain import FOLD_AT, PAGES_ROLL, SEGMENTS_MAX, RemovedLedger, StreamChain
from segments.chain.stream_head import RecentHead, StreamHead
from segments.chain.stream_pages import StreamPages
from segments.chain.stream_segment import NO_CONTENTS, SegmentContents, StreamSegment, StreamSegmentState
from segments.chain.tags import COMPONENT_TAGS, ledger_tags, stream_tags

__all__ = [
    "COMPONENT_TAGS",
    "FOLD_AT",
    "NO_CONTENTS",
    "PAGES_ROLL",
    "PAGE_SEGMENTS",
    "SEGMENTS_MAX",
    "RecentHead",
    "RemovedLedger",
    "SegmentContents",
    "SegmentList",
    "SegmentPage",
    "StreamChain",
    "StreamHead",
    "StreamPages",
    "StreamSegment",
    "StreamSegmentState",
    "decode_chain",
    "encode_chain",
    "ledger_tags",
    "stream_tags",
]
