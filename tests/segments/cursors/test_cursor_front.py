from __future__ import annotations

from segments.cursors.cursor import Cursor
from segments.cursors.cursor_front import CursorFront
from segments.remote import RemoteCursor


def test_cursors_near_and_behind_gateways_share_it() -> None:
    for name in ("position", "properties", "__aenter__", "__aexit__"):
        assert getattr(Cursor, name) is getattr(RemoteCursor, name) is getattr(CursorFront, name)
