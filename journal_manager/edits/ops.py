"""An edit, and its bytes with their checksum.

One edit is one frame (big-endian), the framing HDFS uses for its edits::

    offset    0        1         5        13            13+n
              opcode   length    txid     body          crc32 over everything before it
              u8       u32       u64      n bytes       u32

``length`` counts itself, the txid and the body: 12 + n. An opcode above 127 means that a request id stands before the
edit's own body, which has the opcode less 128. A batch is frames one after the other, with dense transaction ids; it is
written, and becomes durable, at once. Frames can be scanned, copied and counted without knowing what an opcode means.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from journal_manager.codec import read_frames
from journal_manager.edits.requests import RequestId
from journal_manager.errors import OpChecksumError, OpFormatError, OpTooLargeError
from journal_manager.txid import MAX_TXID, NOTHING, TxId, is_txid

_HEADER: Final = struct.Struct(">BIQ")
_LENGTH: Final = struct.Struct(">I")
_CRC: Final = struct.Struct(">I")
OVERHEAD: Final = _HEADER.size + _CRC.size
"""The bytes of a frame besides the body."""

MAX_OPCODE: Final = 127
_WITH_REQUEST: Final = 128
"""Added to the opcode of an edit that carries a request id."""
MAX_OP_BYTES: Final = 50 * 1024 * 1024
"""The longest frame; a longer one is refused before anything is allocated for it."""
_LEAST_LENGTH: Final = OVERHEAD - 5
_MOST_LENGTH: Final = MAX_OP_BYTES - 5
_new: Final = tuple.__new__


class Op(NamedTuple):
    """One edit that was read back. A named tuple, because a replay makes one for each edit."""

    opcode: int
    txid: TxId
    body: bytes
    request: RequestId | None = None
    """The client's request that this edit carries out, if the writer gave one."""


class EditRun(list[Op]):
    """Edits of one segment that follow each other, at least one."""

    __slots__ = ("epoch",)

    def __init__(self, ops: Iterable[Op], epoch: int) -> None:
        super().__init__(ops)
        self.epoch = epoch
        """The epoch of the segment. Keep it with a state that holds these edits: their ids may be used again."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Edits ``first .. first + count - 1`` as bytes: one ledger entry, one record of a file."""

    first: TxId
    count: int
    frames: bytes

    @property
    def last(self) -> TxId:
        return TxId(self.first + self.count - 1)

    def ops(self) -> list[Op]:
        """The edits, each verified.

        Raises:
            OpFormatError: see :func:`decode_ops`.
        """
        return decode_ops(self.frames)

    def beginning_at(self, first: TxId) -> Batch:
        """The edits from ``first`` on, which must be one of this batch's; only lengths are checked.

        Raises:
            OpFormatError: the frames are cut short.
        """
        offset = 0
        for _ in range(self.first, first):
            offset = _frame_end(self.frames, offset, len(self.frames))
        return self if not offset else Batch(first, self.last - first + 1, self.frames[offset:])

    def parts(self, most: int) -> list[Batch]:
        """The same frames, so with their request ids, in batches of at most ``most`` bytes; only lengths are checked.

        What became durable at once in one journal does so in several steps in another then. Each is as long as it may
        be.

        Raises:
            OpTooLargeError: one edit is longer. OpFormatError: the frames are cut short.
        """
        end = len(self.frames)
        if end <= most:
            return [self]
        parts: list[Batch] = []
        first, begin, offset = self.first, 0, 0
        for txid in range(self.first, self.last + 1):
            following = _frame_end(self.frames, offset, end)
            if following - offset > most:
                raise OpTooLargeError(
                    f"edit {txid} has {following - offset} bytes; at most {most} bytes become durable at once here"
                )
            if following - begin > most:
                parts.append(Batch(first, txid - first, self.frames[begin:offset]))
                first, begin = TxId(txid), offset
            offset = following
        parts.append(Batch(first, self.last - first + 1, self.frames[begin:]))
        return parts

    @classmethod
    def of(cls, frames: bytes) -> Batch:
        """Make the batch of these bytes. This checks only lengths: the store has verified its own checksum, and ``ops``
        verifies each frame.

        Raises:
            OpFormatError: the bytes are not whole frames, or there is none.
        """
        offset, count, end = 0, 0, len(frames)
        length_at = _LENGTH.unpack_from
        while end - offset >= OVERHEAD:
            (length,) = length_at(frames, offset + 1)
            following = offset + 5 + length
            if not _LEAST_LENGTH <= length <= _MOST_LENGTH or following > end:
                break
            offset, count = following, count + 1
        if offset < end:
            _frame_end(frames, offset, end)  # says what is wrong
        if not count:
            raise OpFormatError("a batch needs at least one edit")
        first = TxId(_HEADER.unpack_from(frames)[2])
        if not is_txid(first):
            raise OpFormatError(f"a batch begins at {first}, which is no transaction id")
        return cls(first, count, frames)


def encode_op(opcode: int, txid: TxId, body: bytes, request: RequestId | None = None) -> bytes:
    """One frame.

    Raises:
        OpTooLargeError: the frame would be longer than MAX_OP_BYTES.
        ValueError: opcode not in 0..127, or not a transaction id.
    """
    if not 0 <= opcode <= MAX_OPCODE or not is_txid(txid):
        raise ValueError(
            f"an edit's opcode is 0 to {MAX_OPCODE} and its txid at least 1; got opcode {opcode}, txid {txid}"
        )
    if request is not None:
        opcode, body = opcode + _WITH_REQUEST, request.encode() + body
    if OVERHEAD + len(body) > MAX_OP_BYTES:
        raise OpTooLargeError(f"the edit has {len(body)} bytes; an edit may have at most {MAX_OP_BYTES - OVERHEAD}")
    head = _HEADER.pack(opcode, 12 + len(body), txid) + body
    return head + _CRC.pack(zlib.crc32(head))


def encode_batch(first: TxId, ops: Iterable[tuple[int, bytes]], request: RequestId | None = None) -> Batch:
    """The edits ``(opcode, body)`` numbered from ``first``. The last one carries ``request``.

    Raises as :func:`encode_op` does.
    """
    listed = list(ops)
    last = len(listed) - 1
    frames = [
        encode_op(opcode, TxId(first + i), body, request if i == last else None)
        for i, (opcode, body) in enumerate(listed)
    ]
    return Batch(first, len(frames), b"".join(frames))


def join(batches: Sequence[Batch]) -> Batch:
    """Join batches that follow each other to one."""
    if len(batches) == 1:
        return batches[0]
    return Batch(batches[0].first, sum(b.count for b in batches), b"".join(b.frames for b in batches))


def decode_ops(frames: bytes) -> list[Op]:
    """Decode the edits in ``frames``, which must be whole frames with dense transaction ids.

    Raises:
        OpChecksumError: a frame's checksum does not match.
        OpFormatError: a frame is cut short, has an impossible length or opcode, or the wrong txid.
    """
    ops: list[Op] = []
    offset, end, before = 0, len(frames), NOTHING
    view = memoryview(frames)
    while offset < end:
        if end - offset >= OVERHEAD:
            expected = before + 1 if ops else _HEADER.unpack_from(frames, offset)[2]
            whole, ends = read_frames(Op, frames, offset, end, min(expected, MAX_TXID), _MOST_LENGTH, end)
            if whole:
                ops += whole
                offset, before = ends[-1], whole[-1].txid
                continue
        if end - offset < OVERHEAD:
            _frame_end(frames, offset, end)
        opcode, length, txid = _HEADER.unpack_from(frames, offset)
        body_end = offset + 1 + length
        if not _LEAST_LENGTH <= length <= _MOST_LENGTH or body_end + _CRC.size > end:
            _frame_end(frames, offset, end)  # says what is wrong
        if zlib.crc32(view[offset:body_end]) != _CRC.unpack_from(frames, body_end)[0]:
            raise OpChecksumError(f"the checksum of the edit at offset {offset} does not match; it may be edit {txid}")
        if not 1 <= txid <= MAX_TXID:
            raise OpFormatError(f"the edit at offset {offset} has the txid {txid}, which is impossible")
        if txid != before + 1 and ops:
            raise OpFormatError(
                f"edit {txid} follows edit {before}: the ids must be dense", first_missing=TxId(before + 1)
            )
        body = frames[offset + _HEADER.size : body_end]
        ops.append(_new(Op, (opcode, txid, body, None)) if opcode <= MAX_OPCODE else _requested(opcode, txid, body))
        offset, before = body_end + _CRC.size, txid
    return ops


def _requested(opcode: int, txid: TxId, body: bytes) -> Op:
    """An edit whose request id stands before its own body."""
    try:
        request, size = RequestId.decode_prefix(body)
    except ValueError as error:
        raise OpFormatError(f"edit {txid} says that it carries a request id, and has none") from error
    return Op(opcode - _WITH_REQUEST, txid, body[size:], request)


def _frame_end(frames: bytes, offset: int, end: int) -> int:
    if end - offset < OVERHEAD:
        raise OpFormatError(f"an edit at offset {offset} is cut short: {end - offset} bytes are left")
    total = int.from_bytes(frames[offset + 1 : offset + 5], "big") + 5
    if total < OVERHEAD or total > MAX_OP_BYTES:
        raise OpFormatError(f"an edit at offset {offset} says that it has {total} bytes, which is impossible")
    if total > end - offset:
        raise OpFormatError(f"an edit at offset {offset} is cut short: it has {total} bytes, {end - offset} are left")
    return offset + total
