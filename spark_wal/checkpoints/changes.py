"""What a delta or changelog changes, whatever the order: two runs of one query write their rows in another one. Pure.

    delta, changelog v1 (v3)    length of the key, key, length of the value (-1: removed), value; -1 as a key ends
    changelog v2 (v4)           the same with a byte before it: what kind of change; the byte 0 ends
    v3, v4                      also name the versions before them, which are others in each run

Numbers have four bytes, the greatest first. Rows with checksums (``rowChecksum.enabled``) are not read.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final

from spark_wal.checkpoints.lz4_blocks import BlockStreamError, read_stream

_NUMBER: Final = struct.Struct(">i")
_TEXT: Final = struct.Struct(">H")
_END: Final = -1


def changes_digest(data: bytes) -> str | None:
    """A digest of the changes in a file of state, behind the name of their format; None if they cannot be read."""
    try:
        plain = read_stream(data)
        has_kinds, changes = _changes(plain)
    except (BlockStreamError, struct.error, IndexError):
        return None
    return f"{'v2' if has_kinds else 'v1'} {hashlib.sha256(b''.join(sorted(changes))).hexdigest()}"


def _changes(plain: bytes) -> tuple[bool, list[bytes]]:
    """Whether changes have kinds, and each change as its bytes. Raises struct.error or IndexError: this is none of the
    formats."""
    at, has_kinds = 0, False
    if plain[:3] == b"\x00\x02v":
        version = plain[3:4]
        if version not in (b"2", b"3", b"4"):
            raise IndexError
        at, has_kinds = 4, version in (b"2", b"4")
        if version in (b"3", b"4"):
            at += _TEXT.size + _TEXT.unpack_from(plain, at)[0]
    found: list[bytes] = []
    while True:
        start = at
        if has_kinds:
            at += 1
            if plain[start] == 0:
                break
        at, ends = _skip(plain, at)
        if ends:
            if has_kinds:
                raise IndexError
            break
        at, _ = _skip(plain, at)
        found.append(plain[start:at])
    if at != len(plain):
        raise IndexError
    return has_kinds, found


def _skip(plain: bytes, at: int) -> tuple[int, bool]:
    """Behind a length and its bytes; whether the length is -1."""
    (length,) = _NUMBER.unpack_from(plain, at)
    at += _NUMBER.size
    if length == _END:
        return at, True
    if length < 0 or at + length > len(plain):
        raise IndexError
    return at + length, False
