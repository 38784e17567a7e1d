"""Which of what was fetched a reader hands out: from a place on, up to a stop, and some parts (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from segments.entries import StoredEntry
from segments.position import Position
from segments.read.entry_sequence import Item
from segments.read.options import Parts
from segments.read.ready_queue import ReadyQueue
from segments.read.record_batch import EntrySlice
from segments.record import Gap


def make_ready(
    ready: ReadyQueue, items: Sequence[Item], begin: Position, stop: Position | None, parts: Parts | None
) -> bool:
    """Put what is wanted of ``items`` into the queue. Returns whether the stop was reached."""
    whole = [item for item in items if isinstance(item, StoredEntry)]
    is_plain = len(whole) == len(items) and parts is None and stop is None
    if is_plain and (not whole or whole[0].position(0) >= begin):
        ready.add_entries(whole)
        return False
    for item in items:
        if isinstance(item, Gap):
            ready.add([item])
            continue
        a, b, place = 0, item.count, (item.segment, item.entry)
        if place <= begin[:2]:
            a = begin.slot if place == begin[:2] else b
        stopped = stop is not None and place >= stop[:2]
        if stop is not None and stopped:
            b = min(b, stop.slot) if place == stop[:2] else 0
        if a < b and parts is None:
            ready.add([EntrySlice(item, a, b)])
        elif a < b and parts is not None:
            base = item.first_seq_no
            ready.add(EntrySlice(item, x - base, y - base) for x, y in parts(base + a, base + b))
        if stopped:
            return True
    return False
