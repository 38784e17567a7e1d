"""A position as bytes and as text: those of a DistributedLog DLSN, so that log's tools can read it.

    0          1             9             17           25
    +----------+-------------+-------------+------------+
    | version  | segment     | entry       | slot       |      version 0: zeros follow, up to 200 bytes
    +----------+-------------+-------------+------------+

The numbers are big-endian and signed. The text is the base64 of version 1: 36 characters.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Final

from segments.errors import PositionFormatError
from segments.position import Position

_DLSN: Final = struct.Struct(">Bqqq")
_DLSN_VERSION: Final = 1
_LEGACY_VERSION: Final = 0
_LEGACY_SIZE: Final = 200


def encode_position(position: Position) -> str:
    """A position as text: 36 characters of base64.

    Raises:
        PositionFormatError: a number outside of 64 bits.
    """
    return base64.b64encode(to_dlsn(position)).decode()


def decode_position(text: str) -> Position:
    """Read what ``encode_position`` wrote.

    Raises:
        PositionFormatError: the text is no position.
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PositionFormatError(f"{text!r} is no position: it is not base64") from error
    return from_dlsn(raw)


def to_dlsn(position: Position, version: int = _DLSN_VERSION) -> bytes:
    """The bytes of a DLSN: 25 of version 1, or 200 of the old version 0.

    Raises:
        PositionFormatError: another version, or a number outside of 64 bits.
    """
    if version not in (_DLSN_VERSION, _LEGACY_VERSION):
        raise PositionFormatError(f"a position has version 0 or 1, not {version}")
    try:
        raw = _DLSN.pack(version, *position)
    except struct.error as error:
        raise PositionFormatError(f"{position} does not fit into 64 bits a field") from error
    return raw if version == _DLSN_VERSION else raw.ljust(_LEGACY_SIZE, b"\0")


def from_dlsn(raw: bytes) -> Position:
    """Read the bytes of a DLSN of version 0 or 1.

    Raises:
        PositionFormatError: another version, or another length.
    """
    version = raw[0] if raw else None
    sizes = {_DLSN_VERSION: _DLSN.size, _LEGACY_VERSION: _LEGACY_SIZE}
    if version is None or sizes.get(version) != len(raw):
        raise PositionFormatError(f"{len(raw)} bytes of version {version} are no position")
    return Position(*_DLSN.unpack_from(raw)[1:])
