"""Where a record stands in a stream.

A position names a segment, an entry of its ledger, and a slot in that entry. Its 25 bytes, and their base64, are those
of a DistributedLog DLSN of version 1, so that log's tools can read it.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import ClassVar, Final, NamedTuple

from segments.errors import PositionFormatError

_DLSN: Final = struct.Struct(">Bqqq")
_DLSN_VERSION: Final = 1
_LEGACY_VERSION: Final = 0
_LEGACY_SIZE: Final = 200
"""Version 0 has the same fields, and zeros after them."""

_MAX: Final = 2**63 - 1


class _PositionFields(NamedTuple):
    segment: int
    entry: int
    slot: int


class Position(_PositionFields):
    """The place of one record. Positions are ordered, hashable and picklable."""

    __slots__ = ()

    EARLIEST: ClassVar[Position]
    """Before or at the first record of every stream."""

    LATEST: ClassVar[Position]
    """Behind the last record of every stream."""

    BEFORE_FIRST: ClassVar[Position]
    """Before the first record of every stream: "everything up to here" is nothing."""

    @property
    def next(self) -> Position:
        """The smallest position behind this one. No record need be there."""
        return Position(self.segment, self.entry, self.slot + 1)

    def encode(self) -> str:
        """The position as text: 36 characters of base64."""
        return base64.b64encode(self.to_dlsn()).decode()

    @classmethod
    def decode(cls, text: str) -> Position:
        """Read what ``encode`` wrote.

        Raises:
            PositionFormatError: the text is no position.
        """
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise PositionFormatError(f"{text!r} is no position: it is not base64") from error
        return cls.from_dlsn(raw)

    def to_dlsn(self, version: int = _DLSN_VERSION) -> bytes:
        """The bytes of a DLSN: 25 of version 1, or 200 of the old version 0.

        Raises:
            PositionFormatError: another version, or a number outside of 64 bits.
        """
        if version not in (_DLSN_VERSION, _LEGACY_VERSION):
            raise PositionFormatError(f"a position has version 0 or 1, not {version}")
        try:
            raw = _DLSN.pack(version, *self)
        except struct.error as error:
            raise PositionFormatError(f"{self} does not fit into 64 bits a field") from error
        return raw if version == _DLSN_VERSION else raw.ljust(_LEGACY_SIZE, b"\0")

    @classmethod
    def from_dlsn(cls, raw: bytes) -> Position:
        """Read the bytes of a DLSN of version 0 or 1.

        Raises:
            PositionFormatError: another version, or another length.
        """
        version = raw[0] if raw else None
        sizes = {_DLSN_VERSION: _DLSN.size, _LEGACY_VERSION: _LEGACY_SIZE}
        if version is None or sizes.get(version) != len(raw):
            raise PositionFormatError(f"{len(raw)} bytes of version {version} are no position")
        return cls(*_DLSN.unpack_from(raw)[1:])

    def __str__(self) -> str:
        return f"{self.segment}:{self.entry}:{self.slot}"


Position.EARLIEST = Position(1, 0, 0)
Position.LATEST = Position(_MAX, _MAX, _MAX)
Position.BEFORE_FIRST = Position(1, 0, -1)

EARLIEST: Final = Position.EARLIEST
LATEST: Final = Position.LATEST
FIRST_SEGMENT: Final = 1
"""The number of a stream's first segment."""
