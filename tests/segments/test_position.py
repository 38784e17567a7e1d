from __future__ import annotations

import pickle

from segments.position import EARLIEST, LATEST, Position


def test_positions_are_ordered_by_segment_then_entry_then_slot() -> None:
    """SEG-01 position order is (segment, entry, slot); special constants keep their order"""
    rising = [
        Position.BEFORE_FIRST,
        EARLIEST,
        Position(1, 0, 1),
        Position(1, 1, 0),
        Position(2, 0, -1),
        Position(2, 0, 0),
        LATEST,
    ]
    assert rising == sorted(rising) and len(set(rising)) == len(rising)
    assert EARLIEST.next == Position(1, 0, 1)
    assert Position.BEFORE_FIRST.next == EARLIEST


def test_a_position_survives_a_pickle() -> None:
    position = Position(3, -1, 2**40)
    assert pickle.loads(pickle.dumps(position)) == position and hash(position) == hash(tuple(position))
