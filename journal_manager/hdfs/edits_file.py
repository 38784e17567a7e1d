"""HDFS's edits file: a header, edits in frames, and padding behind the last one (pure).

    header    i32 layout version | i32 number of flags (0)
    edits     frames, see journal_manager.edits.ops; ids rise by one
    padding   0xFF, up to the size that was set aside; the first 0xFF in place of an op code ends the edits

Frames of a newer layout can be read, copied and counted; their bodies cannot be decoded.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from journal_manager.codec import read_frames
from journal_manager.edits import MAX_OP_BYTES, MAX_OPCODE, OVERHEAD, Op, TxId, is_txid
from journal_manager.errors import OpChecksumError, OpFormatError, UnsupportedLayoutError

_HEADER: Final = struct.Struct(">ii")
_FRAME: Final = struct.Struct(">BIQ")
_CRC: Final = struct.Struct(">I")
HEADER_BYTES: Final = _HEADER.size
_RUN: Final = 256
"""So many edits are cut at once, if they are whole."""
TERMINATOR: Final = 0xFF
_PADDING: Final = b"\x00\xff"
_HEAD_OF_ZEROS: Final = 32
"""So many bytes at the beginning of an edit may all look like padding: op code 0, a length, an id, an inode id."""
_OLDEST_FRAMED: Final = -56
"""Edits have their length in front of them since this layout."""


def encode_edits_header(layout_version: int) -> bytes:
    """The bytes at the beginning of an edits file."""
    return _HEADER.pack(layout_version, 0)


class EditsReader:
    """Takes an edits file's bytes in pieces of any size, and hands out its edits. It holds one piece and one frame."""

    def __init__(self, *, max_op_bytes: int = MAX_OP_BYTES, last: int | None = None, recover: bool = False) -> None:
        """
        Args:
            max_op_bytes: refuse a longer frame before anything is allocated for it.
            last: stop behind the edit with this id; nothing behind it is looked at.
            recover: step over damage to the next whole edit, and note in ``skipped`` what was left out.
        """
        self._max_op_bytes = max_op_bytes
        self._last = last
        self._recover = recover
        self._pending = b""
        self._offset = 0
        """Where ``_pending`` begins in the file."""
        self._in_padding = False
        self._ended = False
        self._next: int | None = None
        self.layout_version: int | None = None
        """Known once the header was read."""
        self.skipped: list[tuple[int, int]] = []
        """With ``recover``: (offset, number of bytes) of each damage."""

    def feed(self, data: bytes) -> Iterator[Op]:
        """The edits that are whole with ``data``. Each frame's checksum is verified.

        Raises (while iterating):
            OpChecksumError, OpFormatError: damage at the offset that the error gives, not with ``recover``.
            UnsupportedLayoutError: the header names a layout whose frames have no length.
        """
        self._pending += data
        return self._read(False)

    def finish(self) -> Iterator[Op]:
        """The edits that are left at the end of the file.

        Raises (while iterating):
            OpFormatError: the file ends inside its header or inside an edit.
        """
        return self._read(True)

    def _read(self, at_end: bool) -> Iterator[Op]:
        data, at = self._pending, 0
        try:
            if self.layout_version is None:
                if len(data) < HEADER_BYTES:
                    if at_end:
                        raise OpFormatError(f"an edits file begins with {HEADER_BYTES} bytes, and this has {len(data)}")
                    return
                self._header(data)
                at = HEADER_BYTES
            size, most = len(data), self._max_op_bytes - 5
            while at < size and not self._ended:
                for op, behind in self._whole(data, at, size, most):  # all else is looked at below
                    at = behind
                    self._next = op.txid + 1
                    self._ended = op.txid == self._last
                    yield op
                if self._ended:
                    return
                if at == size:
                    return
                if self._in_padding or data[at] == TERMINATOR:
                    end = self._padding(data, at, at_end)
                    if end is None:
                        return
                    at = end
                    continue
                try:
                    found = self._frame(data, at, at_end)
                except OpFormatError:
                    if not self._recover:
                        raise
                    self._skip(at, at + 1)
                    at += 1
                    continue
                if found is None:
                    return
                op, at = found
                self._ended = op.txid == self._last
                yield op
        finally:
            self._pending = b"" if self._ended else data[at:]
            self._offset += at

    def _whole(self, data: bytes, at: int, size: int, most: int) -> Iterator[tuple[Op, int]]:
        """Whole edits that follow each other, and where each ends, up to ``last``."""
        txid = 0 if self._next is None or self._in_padding else self._next
        while txid:
            count = _RUN if self._last is None or self._last < txid else min(_RUN, self._last - txid + 1)
            ops, ends = read_frames(Op, data, at, size, txid, most, count)
            yield from zip(ops, ends, strict=True)
            if len(ops) < _RUN:
                return
            at, txid = ends[-1], txid + _RUN

    def _header(self, data: bytes) -> None:
        version, flags = _HEADER.unpack_from(data)
        if version > _OLDEST_FRAMED:
            raise UnsupportedLayoutError(
                f"this is no edits file of HDFS, or too old a one: it begins with the layout {version}, and layouts "
                f"{_OLDEST_FRAMED} and newer (lower numbers) are read"
            )
        if flags:
            raise UnsupportedLayoutError(f"the header says that {flags} flags follow, and HDFS writes none")
        self.layout_version = version

    def _padding(self, data: bytes, at: int, at_end: bool) -> int | None:
        """Step over padding; None if more bytes are needed to know that it is some.

        Raises:
            OpFormatError: something else stands in it, so that a stray 0xFF could hide edits.
        """
        rest = data[at:].strip(_PADDING)
        if rest and self._recover:
            end = max(at + 1, data.index(rest, at) - _HEAD_OF_ZEROS)
            self._skip(at, end)
            return end
        if rest:
            where = self._offset + data.index(rest, at)
            raise OpFormatError(f"byte {where} is neither 0x00 nor 0xFF, and stands behind the end of the edits")
        if self._recover and not at_end and len(data) - at < self._max_op_bytes:
            return None
        self._in_padding = True
        return len(data)

    def _frame(self, data: bytes, at: int, at_end: bool) -> tuple[Op, int] | None:
        """The edit at ``at`` and where it ends; None if more bytes are needed."""
        where = self._offset + at
        left = len(data) - at
        if left < _FRAME.size:
            if at_end:
                raise OpFormatError(f"the file ends inside an edit: {left} bytes at byte {where}")
            return None
        opcode, length, txid = _FRAME.unpack_from(data, at)
        total = length + 5
        if total < OVERHEAD or total > self._max_op_bytes:
            raise OpFormatError(
                f"the edit at byte {where} says that it has {total} bytes; an edit has {OVERHEAD} to "
                f"{self._max_op_bytes}"
            )
        if total > left:
            if at_end:
                raise OpFormatError(f"the file ends inside an edit: {left} of {total} bytes at byte {where}")
            return None
        body_end = at + total - _CRC.size
        if zlib.crc32(memoryview(data)[at:body_end]) != _CRC.unpack_from(data, body_end)[0]:
            raise OpChecksumError(f"the checksum of the edit at byte {where} does not match; it may be edit {txid}")
        if opcode > MAX_OPCODE or not is_txid(txid):
            raise OpFormatError(f"the edit at byte {where} has op code {opcode} and id {txid}, which is impossible")
        if self._next is not None and txid != self._next and not self._recover:
            raise OpFormatError(
                f"edit {txid} at byte {where} follows edit {self._next - 1}: the ids must rise by one",
                first_missing=TxId(self._next),
            )
        self._next = txid + 1
        return Op(opcode, TxId(txid), data[at + _FRAME.size : body_end]), at + total

    def _skip(self, at: int, end: int) -> None:
        where, count = self._offset + at, end - at
        if self.skipped and sum(self.skipped[-1]) == where:
            where, count = self.skipped[-1][0], self.skipped[-1][1] + count
            self.skipped.pop()
        self.skipped.append((where, count))
