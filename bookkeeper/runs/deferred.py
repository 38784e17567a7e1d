"""Frames of adds that a bookie may answer before they are durable: the field ``writeFlags`` put behind each."""

from __future__ import annotations

from array import array
from typing import Final

from bookkeeper.runs.frames import U32, put_varint

_FLAGS: Final = b"\x28\x01"
"""Field 5 of an add request, ``writeFlags``: DEFERRED_SYNC."""


def defer_sync(frames: bytes, ends: array[int]) -> tuple[bytes, array[int]]:
    """The same v3 adds, as ``encode_adds`` made them, with the flag DEFERRED_SYNC.

    The flag comes last in the request, and the request last in the frame: only two lengths before it change.

        | length: u32 | 0a n | header: n | aa 06 | size: varint | request: size | 28 01 |
    """
    out = bytearray()
    moved = array("q")
    begin = 0
    for end in ends:
        at = begin + 6 + frames[begin + 5] + 2
        size = shift = 0
        while True:
            byte = frames[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        assert at + size == end, "the request ends the frame"
        inner = frames[begin + 4 : begin + 8 + frames[begin + 5]] + put_varint(size + len(_FLAGS))
        out += U32.pack(len(inner) + size + len(_FLAGS))
        out += inner
        out += memoryview(frames)[at:end]
        out += _FLAGS
        moved.append(len(out))
        begin = end
    return bytes(out), moved
