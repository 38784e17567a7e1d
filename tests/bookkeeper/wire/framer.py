"""Cuts a stream of test bytes into frames: ``[length u32][length bytes]``; the length does not count itself."""

from __future__ import annotations

from struct import Struct

from bookkeeper.codec.shapes import FRAME_MAX
from bookkeeper.errors import MalformedFrameError
from bookkeeper.seams import Buffer

_LENGTH = Struct(">I")


class Framer:
    """``feed(data)`` returns whole bodies. It refuses an impossible length before the body arrives."""

    __slots__ = ("_error", "_frame_max", "_pending")

    def __init__(self, frame_max: int = FRAME_MAX) -> None:
        self._frame_max = frame_max
        self._pending = bytearray()
        self._error: MalformedFrameError | None = None

    def feed(self, data: Buffer) -> list[bytes]:
        """Take more of the stream; return the bodies that are whole now, in order.

        Raises:
            MalformedFrameError: the next frame has length 0 or exceeds the limit. The first call that has no whole
                body to return before it raises this, and so does every call after.
        """
        if self._error is not None:
            raise self._error
        pending = self._pending
        pending += data
        bodies: list[bytes] = []
        at = 0
        while len(pending) - at >= 4:
            (length,) = _LENGTH.unpack_from(pending, at)
            if length == 0 or length + 4 > self._frame_max:
                self._error = MalformedFrameError(f"a frame has {length} bytes; 1 to {self._frame_max - 4} are allowed")
                break
            if len(pending) - at - 4 < length:
                break
            bodies.append(bytes(memoryview(pending)[at + 4 : at + 4 + length]))
            at += 4 + length
        del pending[:at]
        if self._error is not None:
            pending.clear()
            if not bodies:
                raise self._error
        return bodies
