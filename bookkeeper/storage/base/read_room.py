"""Memory into which one reader reads again and again: fresh memory costs more than the read itself."""

from __future__ import annotations

from typing import Final

from bookkeeper.seams import File

_UNIT: Final = 1 << 20
_KEPT_MAX: Final = 8 * _UNIT
"""What is longer gets memory of its own."""


class ReadRoom:
    """Owned by one thread."""

    def __init__(self) -> None:
        self._room = memoryview(bytearray())

    def read(self, file: File, size: int, offset: int) -> memoryview:
        """Like ``file.pread``; the bytes are valid until the next read into this room."""
        room = self.of(size)
        return room[: file.pread_into(room, offset)]

    def of(self, size: int) -> memoryview:
        """So many bytes, which hold anything."""
        if size > _KEPT_MAX:
            return memoryview(bytearray(size))
        if size > len(self._room):
            self._room = memoryview(bytearray(-(-size // _UNIT) * _UNIT))
        return self._room[:size]
