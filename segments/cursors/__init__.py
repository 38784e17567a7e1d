"""Cursors: places in a stream that outlive their readers.

cursor          what an application holds
cursor_front    what is the same behind gateways
cursor_owner    a cursor's node in its owner's hands; gathers acknowledgements
cursor_node   the records at their paths
cursor_state    the record, its legal steps, its history
cursor_format   the record as bytes
acked_ranges    which records are done
"""

from segments.cursors.acked_ranges import FrozenRanges, Mark, undone
from segments.cursors.cursor import Acked, Cursor, acknowledgements
from segments.cursors.cursor_front import CursorFront, CursorOptions
from segments.cursors.cursor_node import cursors_as_placed, read_cursors
from segments.cursors.cursor_state import (
    RANGES_MAX,
    UNCLAIMED,
    UNSAVED_PER_RANGE,
    Acknowledgement,
    CursorChange,
    CursorState,
    CursorVersion,
)

__all__ = [
    "RANGES_MAX",
    "UNCLAIMED",
    "UNSAVED_PER_RANGE",
    "Acked",
    "Acknowledgement",
    "Cursor",
    "CursorChange",
    "CursorFront",
    "CursorOptions",
    "CursorState",
    "CursorVersion",
    "FrozenRanges",
    "Mark",
    "acknowledgements",
    "cursors_as_placed",
    "read_cursors",
    "undone",
]
