"""Where a reader goes on, at any gateway. Pure.

A token is one byte of version, 16 bytes of the stream's id and the 25 bytes of a position. Clients only keep it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from segments.errors import PositionFormatError
from segments.position import Position
from segments.position_format import from_dlsn, to_dlsn

_VERSION: Final = 1
_ID_SIZE: Final = 16


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """The next position of a reader, and the stream that it is in."""

    stream_id: str
    """32 hexadecimal digits."""
    position: Position

    def encode(self) -> bytes:
        """The bytes that a client keeps."""
        return bytes([_VERSION]) + bytes.fromhex(self.stream_id) + to_dlsn(self.position)

    @classmethod
    def decode(cls, raw: bytes) -> ResumeToken:
        """Read what ``encode`` wrote.

        Raises:
            PositionFormatError: the bytes are no token of this version.
        """
        if len(raw) <= 1 + _ID_SIZE or raw[0] != _VERSION:
            raise PositionFormatError(f"these {len(raw)} bytes are no token to resume with")
        return cls(raw[1 : 1 + _ID_SIZE].hex(), from_dlsn(raw[1 + _ID_SIZE :]))
