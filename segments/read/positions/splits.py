"""Cuts a part of a stream into ranges of about equal size, for scans side by side (pure).

Cuts are between entries, and come from what the stream's node says of its segments; nothing is read. Only integers
are used: a segment may have more records than a float counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from segments.chain import StreamChain
from segments.position import Position
from segments.read.positions.seek_target import visible_segments


@dataclass(frozen=True, slots=True)
class StreamRange:
    """Records from ``start`` up to, and not including, ``stop``."""

    start: Position
    stop: Position
    records: int
    """About how many; exact where a whole segment is in it."""
    bytes: int
    """About how many, as stored once."""


@dataclass(frozen=True, slots=True)
class _Span:
    """Entries ``first .. end - 1`` of one segment."""

    segment: int
    first: int
    end: int
    records: int
    bytes: int


def split(
    chain: StreamChain, start: Position, stop: Position, end_seq_no: int, last_entry: int, target: int
) -> list[StreamRange]:
    """Ranges that together are ``start`` up to ``stop``: about ``target`` of them, never more.

    ``end_seq_no`` and ``last_entry`` are those of the open segment: the number behind its last confirmed record, and
    its last confirmed entry.

    Raises:
        ValueError: ``target`` is below 1.
    """
    if target < 1:
        raise ValueError(f"a stream is cut into at least one range, not into {target}")
    if start >= stop:
        return []
    spans = _spans(chain, start, stop, end_seq_no, last_entry)
    total = sum(span.bytes for span in spans)
    target = min(target, sum(span.end - span.first for span in spans))  # an entry is not cut
    cuts: list[Position] = []
    before = 0
    for span in spans:
        entries = span.end - span.first
        for k in range(len(cuts) + 1, target):
            goal = total * k // target
            if goal >= before + span.bytes:
                break
            cut = Position(span.segment, span.first + entries * (goal - before) // span.bytes, 0)
            cuts.append(cut)
        before += span.bytes
    borders = [start, *sorted({cut for cut in cuts if start < cut < stop}), stop]
    return [_range(spans, a, b) for a, b in pairwise(borders)]


def _spans(chain: StreamChain, start: Position, stop: Position, end_seq_no: int, last_entry: int) -> list[_Span]:
    found = []
    for segment in visible_segments(chain):
        if segment.is_open:
            last, records = last_entry, max(0, end_seq_no - segment.start_seq_no)
            size = records * _density(chain)
        else:
            assert segment.contents.last is not None
            last, records, size = segment.contents.last[0], segment.records, segment.bytes
        first = start.entry if segment.number == start.segment else 0
        end = last + 1
        if segment.number == stop.segment:
            end = min(end, stop.entry + (1 if stop.slot > 0 else 0))
        if segment.number < start.segment or segment.number > stop.segment or first >= end:
            continue
        found.append(_Span(segment.number, first, end, *_share(records, max(1, size), end - first, last + 1)))
    return found


def _density(chain: StreamChain) -> int:
    """Bytes of a record, by the completed segments."""
    records = chain.listed_records
    return max(1, chain.listed_bytes // records) if records else 100


def _range(spans: list[_Span], start: Position, stop: Position) -> StreamRange:
    records = size = 0
    for span in spans:
        first = max(span.first, start.entry) if span.segment == start.segment else span.first
        end = span.end
        if span.segment == stop.segment:
            end = min(end, stop.entry + (1 if stop.slot > 0 else 0))
        if span.segment < start.segment or span.segment > stop.segment or first >= end:
            continue
        some = _share(span.records, span.bytes, end - first, span.end - span.first)
        records, size = records + some[0], size + some[1]
    return StreamRange(start, stop, records, size)


def _share(records: int, size: int, part: int, whole: int) -> tuple[int, int]:
    """The part of some records and bytes, rounded. In integers: a float has no 2**53 + 1."""
    return (2 * records * part + whole) // (2 * whole), max(1, (2 * size * part + whole) // (2 * whole))
