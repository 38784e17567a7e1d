"""The file that a stream is exported to, and imported from (codec).

    8 bytes    BKSTREAM
    frames     1 byte kind, 4 bytes length, the content, 4 bytes CRC32C of kind, length and content; little-endian

    H          first: JSON about the stream: its name, its configuration, which positions are here
    S          JSON about a segment; its entries follow
    E          8 bytes entry id, then the entry as it is in its ledger
    Z          last: JSON with the numbers of segments, entries and bytes, and the SHA-256 of everything before it

The file is checksummed: a changed bit, a missing frame and a missing end are noticed, each where it is. Entries keep
their segments' numbers and their own, so that positions stay what they are.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from bookkeeper.codec import crc32c
from segments.errors import StreamCorruptError, UnsupportedStreamFormatError

MAGIC: Final = b"BKSTREAM"
FORMAT: Final = 2
"""With segments that were published whole; other files have format 1."""
HEADER: Final = b"H"
SEGMENT: Final = b"S"
ENTRY: Final = b"E"
END: Final = b"Z"
FRAME_MAX: Final = 16 * 1024 * 1024
"""No frame is longer: a damaged length must not ask for gigabytes."""

_FRAME: Final = struct.Struct("<cI")
_CHECKSUM: Final = struct.Struct("<I")
_ENTRY_ID: Final = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class Totals:
    """What a file holds."""

    segments: int
    entries: int
    bytes: int
    """Of the entries."""


class BundleWriter:
    """Makes the bytes of a file, in order: header, then segments with their entries, then the end."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._segments = self._entries = self._bytes = 0

    def header(self, about: dict[str, Any], *, published: bool = False) -> bytes:
        """The file's first bytes. ``published``: some segments were published whole."""
        return self._add(MAGIC) + self._frame(HEADER, _json({"format": FORMAT if published else 1, **about}))

    def segment(self, about: dict[str, Any]) -> bytes:
        """A segment begins."""
        self._segments += 1
        return self._frame(SEGMENT, _json(about))

    def entry(self, entry_id: int, content: bytes | memoryview) -> bytes:
        """One entry of the segment that began last."""
        self._entries += 1
        self._bytes += len(content)
        return self._frame(ENTRY, _ENTRY_ID.pack(entry_id) + content)

    def end(self) -> bytes:
        """The last bytes."""
        totals = {"segments": self._segments, "entries": self._entries, "bytes": self._bytes}
        return self._frame(END, _json({**totals, "sha256": self._digest.hexdigest()}))

    @property
    def totals(self) -> Totals:
        """What was written so far."""
        return Totals(self._segments, self._entries, self._bytes)

    def _frame(self, kind: bytes, content: bytes) -> bytes:
        head = _FRAME.pack(kind, len(content))
        return self._add(head + content + _CHECKSUM.pack(crc32c(head + content)))

    def _add(self, data: bytes) -> bytes:
        self._digest.update(data)
        return data


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame. ``about`` is the JSON of all kinds but an entry."""

    kind: bytes
    about: dict[str, Any]
    entry_id: int = -1
    content: bytes = b""


async def read_bundle(chunks: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    """Read a file's frames in order, each verified; the end only if everything before it is what was written.

    Raises:
        StreamCorruptError: this is another file, or it is damaged or cut; says at which byte.
        UnsupportedStreamFormatError: a newer program wrote it.
    """
    source = _Source(chunks)
    if await source.take(len(MAGIC)) != MAGIC:
        raise StreamCorruptError("this is no exported stream: it does not begin with BKSTREAM")
    counts = {SEGMENT: 0, ENTRY: 0}
    size = 0
    first = True
    while True:
        digest, at = source.digest.hexdigest(), source.offset
        frame = await _next_frame(source)
        if first != (frame.kind == HEADER):
            raise StreamCorruptError(f"the exported stream has its parts in another order, at byte {at}")
        if first:
            _check_format(frame.about)
            first = False
        if frame.kind == END:
            there = {"segments": counts[SEGMENT], "entries": counts[ENTRY], "bytes": size, "sha256": digest}
            if frame.about != there or await source.take(1, may_end=True):
                raise StreamCorruptError("the exported stream's end does not fit what is before it")
            yield frame
            return
        if frame.kind in counts:
            counts[frame.kind] += 1
            size += len(frame.content)
        yield frame


def _check_format(about: dict[str, Any]) -> None:
    found = about.get("format")
    if not isinstance(found, int) or found > FORMAT:
        raise UnsupportedStreamFormatError(
            f"the exported stream has format {found}, and this program reads formats up to {FORMAT}"
        )


async def _next_frame(source: _Source) -> Frame:
    at = source.offset
    head = await source.take(_FRAME.size)
    kind, length = _FRAME.unpack(head)
    if kind not in (HEADER, SEGMENT, ENTRY, END) or length > FRAME_MAX:
        raise StreamCorruptError(f"the exported stream is damaged at byte {at}")
    content = await source.take(length)
    (checksum,) = _CHECKSUM.unpack(await source.take(_CHECKSUM.size))
    if crc32c(head + content) != checksum:
        raise StreamCorruptError(f"the exported stream is damaged between bytes {at} and {source.offset}")
    if kind == ENTRY:
        (entry_id,) = _ENTRY_ID.unpack_from(content)
        return Frame(kind, {}, entry_id, content[_ENTRY_ID.size :])
    return Frame(kind, json.loads(content))


class _Source:
    """Chunks of any length, taken in pieces of a wanted length."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._waiting = bytearray()
        self.offset = 0
        self.digest = hashlib.sha256()

    async def take(self, length: int, *, may_end: bool = False) -> bytes:
        while len(self._waiting) < length:
            try:
                self._waiting += await anext(self._chunks)
            except StopAsyncIteration:
                if may_end and not self._waiting:
                    return b""
                raise StreamCorruptError(
                    f"the exported stream is cut: it ends at byte {self.offset + len(self._waiting)}"
                ) from None
        taken = bytes(self._waiting[:length])
        del self._waiting[:length]
        self.offset += length
        self.digest.update(taken)
        return taken


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
