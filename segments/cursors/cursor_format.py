"""A cursor's node as bytes (little-endian).

    "BKcu"  version u8  flags u8  zero u16  body size u32  CRC32C u32   then the body, zlib-compressed if flags & 1

    body      epoch u64, owner text, nonce text,
              properties: count u32, then name text, value text each,
              versions: count u32, the present one last
    version   number u64, changed i64 (ms since 1970), change u8, mark: seq_no, segment, entry, slot i64 each,
              ranges: count u32, then five columns of i64: first, end, segment, entry, slot (behind the last record)
    text      size u32, UTF-8

The property ``bookkeeper.by`` says whose the cursor is. It is no field, so that earlier programs carry it on.
The size and the checksum are those of the stored body; the checksum covers what is before it, too.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from bookkeeper.codec import crc32c
from segments.cursors.acked_ranges import NO_RANGES, FrozenRanges, Mark
from segments.cursors.cursor_state import BY_PROPERTY, CursorChange, CursorState, CursorVersion
from segments.errors import CursorFullError, StreamCorruptError, UnsupportedStreamFormatError
from segments.position import Position

MAGIC: Final = b"BKcu"
FORMAT: Final = 1
NODE_BYTES_MAX: Final = 900_000
"""Metadata stores take values of up to about one million bytes."""

_HEADER: Final = struct.Struct("<4sBBHI")
_CRC: Final = struct.Struct("<I")
_COUNT: Final = struct.Struct("<I")
_VERSION: Final = struct.Struct("<QqBqqqqI")
_EPOCH: Final = struct.Struct("<Q")
_COMPRESSED: Final = 1
_COMPRESS_FROM: Final = 1024
_UNPACKED_MAX: Final = 16 * 1024 * 1024


def encode_cursor(state: CursorState) -> bytes:
    """The node as bytes.

    Raises:
        CursorFullError: it is too large for a metadata store.
    """
    properties = {**state.properties, BY_PROPERTY: state.by} if state.by else state.properties
    parts = [_EPOCH.pack(state.epoch), _text(state.owner), _text(state.nonce), _COUNT.pack(len(properties))]
    for name, value in properties.items():
        parts += _text(name), _text(value)
    parts.append(_COUNT.pack(len(state.history) + 1))
    for version in (*state.history, state.version):
        parts += _version(version)
    body, flags = b"".join(parts), 0
    if len(body) >= _COMPRESS_FROM:
        body, flags = zlib.compress(body, 1), _COMPRESSED
    header = _HEADER.pack(MAGIC, FORMAT, flags, 0, len(body))
    raw = b"".join([header, _CRC.pack(crc32c(body, crc32c(header))), body])
    if len(raw) > NODE_BYTES_MAX:
        raise CursorFullError(
            f"the cursor's node would have {len(raw)} bytes, and may have {NODE_BYTES_MAX}: acknowledge the "
            "records that are missing between those that are done"
        )
    return raw


def decode_cursor(raw: bytes) -> CursorState:
    """Read a node.

    Raises:
        UnsupportedStreamFormatError: a newer program wrote it. StreamCorruptError: it is damaged, or no cursor.
    """
    try:
        magic, version, flags, _, size = _HEADER.unpack_from(raw)
        if magic != MAGIC:
            raise StreamCorruptError("this is no cursor's node")
        if version > FORMAT:
            raise UnsupportedStreamFormatError(
                f"the cursor's node has format {version}, and this program reads formats up to {FORMAT}: use a newer "
                "program"
            )
        begin = _HEADER.size + _CRC.size
        body = raw[begin:]
        if len(body) != size or crc32c(body, crc32c(raw[: _HEADER.size])) != _CRC.unpack_from(raw, _HEADER.size)[0]:
            raise StreamCorruptError("the cursor's node is damaged: its checksum or its size is wrong")
        if flags & _COMPRESSED:
            body = zlib.decompressobj().decompress(body, _UNPACKED_MAX)
        return _Body(body).state()
    except (struct.error, ValueError, zlib.error, IndexError) as error:
        raise StreamCorruptError(f"the cursor's node is damaged: {error}") from error


def _text(text: str) -> bytes:
    raw = text.encode()
    return _COUNT.pack(len(raw)) + raw


def _version(version: CursorVersion) -> list[bytes]:
    mark, ranges = version.mark, version.ranges
    head = _VERSION.pack(
        version.number, version.changed_ms, version.change.value, mark.seq_no, *mark.position, len(ranges)
    )
    if not ranges:
        return [head]
    columns = (ranges.firsts, ranges.ends, *zip(*ranges.afters, strict=True))
    return [head, *(struct.pack(f"<{len(ranges)}q", *column) for column in columns)]


class _Body:
    """Reads a body from front to back."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def state(self) -> CursorState:
        epoch: int = self._take(_EPOCH)[0]
        owner, nonce = self._text(), self._text()
        properties = {self._text(): self._text() for _ in range(self._count())}
        by = properties.pop(BY_PROPERTY, "")
        *history, version = [self._version() for _ in range(self._count())]
        if self._at != len(self._raw):
            raise ValueError(f"{len(self._raw) - self._at} bytes follow its end")
        return CursorState(version, epoch, owner, nonce, properties, tuple(history), by)

    def _take(self, part: struct.Struct) -> tuple[int, ...]:
        values = part.unpack_from(self._raw, self._at)
        self._at += part.size
        return values

    def _count(self) -> int:
        return self._take(_COUNT)[0]

    def _text(self) -> str:
        size = self._count()
        if size > len(self._raw) - self._at:
            raise ValueError("a text is cut off")
        self._at += size
        return self._raw[self._at - size : self._at].decode()

    def _version(self) -> CursorVersion:
        number, changed_ms, change, seq_no, *position, count = self._take(_VERSION)
        ranges = NO_RANGES
        if count:
            firsts, ends, *places = [self._take(struct.Struct(f"<{count}q")) for _ in range(5)]
            ranges = FrozenRanges(firsts, ends, tuple(map(Position, *places)))
        return CursorVersion(number, changed_ms, CursorChange(change), Mark(seq_no, Position(*position)), ranges)
