"""Which segment a seek leads to, as far as a stream's node tells (pure).

The record knows of each completed segment how many records it has, and the range of their transaction ids and times.
So most segments are passed without a look at their ledgers. Of the open segment only the beginning is known: it is
searched if no segment before it has what is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from segments.chain import SegmentPage, StreamChain, StreamSegment
from segments.position import Position


class SearchKey(Enum):
    """The property by which a record is looked for: the first record with this number, or a greater one."""

    SEQ_NO = "sequence number"
    TXID = "transaction id"
    APPEND_TIME = "time of append"
    EVENT_TIME = "event time"
    """The only one that may fall from record to record."""


@dataclass(frozen=True, slots=True)
class TargetPosition:
    """The first record at or behind this position is the one."""

    position: Position


@dataclass(frozen=True, slots=True)
class TargetSegment:
    """The record is in this segment, unless the segment is open and ends before it."""

    segment: StreamSegment


@dataclass(frozen=True, slots=True)
class TargetEnd:
    """No record qualifies: the position is behind the last record."""


SeekTarget: TypeAlias = TargetPosition | TargetSegment | TargetEnd


def visible_segments(chain: StreamChain) -> tuple[StreamSegment, ...]:
    """The segments of which readers see records or may see them, in order."""
    first = chain.first_position
    return tuple(segment for segment in chain.segments if is_visible(segment, first))


def seek_target(chain: StreamChain, key: SearchKey, target: int, *, behind: int = 0) -> SeekTarget:
    """Where the first record at or above ``target`` is. ``behind``: only segments with a greater number count."""
    beginning = chain.first_position
    if key is SearchKey.SEQ_NO and not behind and chain.start_seq_no is not None and target <= chain.start_seq_no:
        return TargetPosition(beginning)
    for segment in _candidates(chain, key, target, behind):
        if not segment.is_open and not _may_hold(segment, key, target):
            continue
        if _begins_at(segment, key, target):
            return TargetPosition(max(segment.first, beginning))
        return TargetSegment(segment)
    return TargetEnd()


def _candidates(chain: StreamChain, key: SearchKey, target: int, behind: int) -> Iterator[StreamSegment]:
    """The visible segments behind the one with number ``behind``, without those of pages that end below ``target``."""
    first = chain.first_position
    for page in chain.pages:
        greatest = _greatest_of(page, key)
        if page.last <= behind or page.last < first.segment or greatest is None or greatest < target:
            continue
        for segment in page.segments():
            if segment.number > behind and is_visible(segment, first):
                yield segment
    for segment in chain.recent:
        if segment.number > behind and is_visible(segment, first):
            yield segment


def _greatest_of(page: SegmentPage, key: SearchKey) -> int | None:
    match key:
        case SearchKey.SEQ_NO:
            return page.end_seq_no - 1
        case SearchKey.TXID:
            return page.last_txid
        case SearchKey.APPEND_TIME:
            return page.last_append_ms
        case SearchKey.EVENT_TIME:
            return page.max_event_ms


def is_visible(segment: StreamSegment, first: Position) -> bool:
    """Whether readers see records of a segment, or may see them, if the stream begins at ``first``."""
    return segment.number >= first.segment and (segment.is_open or _reaches(segment, first))


def _reaches(segment: StreamSegment, first: Position) -> bool:
    return segment.last is not None and segment.last >= first


def _may_hold(segment: StreamSegment, key: SearchKey, target: int) -> bool:
    """Whether a completed segment has a record at or above ``target``."""
    has = segment.contents
    match key:
        case SearchKey.SEQ_NO:
            greatest = segment.start_seq_no + has.records - 1 if has.records else None
        case SearchKey.TXID:
            greatest = has.last_txid
        case SearchKey.APPEND_TIME:
            greatest = has.last_append_ms
        case SearchKey.EVENT_TIME:
            greatest = has.max_event_ms
    return greatest is not None and greatest >= target


def _begins_at(segment: StreamSegment, key: SearchKey, target: int) -> bool:
    """Whether the first record of the segment is the one, by what is known without a look."""
    if key is SearchKey.SEQ_NO:
        return target <= segment.start_seq_no
    if key is SearchKey.APPEND_TIME:
        first = segment.contents.first_append_ms
        return first is not None and target <= first
    return False
