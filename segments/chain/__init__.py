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

from segments.chain.chain_codec import decode_chain, encode_chain
from segments.chain.segment_page import SegmentPage
from segments.chain.stream_chain import PAGES_ROLL, RemovedLedger, StreamChain
from segments.chain.stream_head import RecentHead, StreamHead
from segments.chain.stream_pages import StreamPages
from segments.chain.stream_segment import SegmentContents, StreamSegment, StreamSegmentState
from segments.chain.tags import COMPONENT_TAGS, ledger_tags, stream_tags

__all__ = [
    "COMPONENT_TAGS",
    "PAGES_ROLL",
    "RecentHead",
    "RemovedLedger",
    "SegmentContents",
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
