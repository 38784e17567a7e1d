"""Reads the envelope of a request from its first bytes, and makes the refusal for it.

This is for connections whose peer is not known yet: no body of a request is parsed for them (X2, X10). Only the header
message of a v3 frame is read, and only those fixed fields of a v2 frame that its answer must repeat.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final

from google.protobuf.message import DecodeError

from bookkeeper.codec.shapes import KEY_SIZE, Dialect
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.wire import bookkeeper_pb2 as pb
from bookkeeper.wire import v2, v3
from bookkeeper.wire.requests import AddReply, BareReply, Operation, ReadReply, RequestHeader
from bookkeeper.wire.status import Status

HEAD: Final = 128
"""Bytes of a frame's body that are enough for the envelope."""

_HEADER_TAG: Final = 0x0A
_WORD: Final = Struct(">BBH")
_IDS: Final = Struct(">qq")
_V2_OPS: Final = {1: Operation.ADD, 2: Operation.READ, 3: Operation.AUTH, 7: Operation.BATCH_READ}


def header_of(head: Buffer, *, v2_only: bool = False) -> RequestHeader | None:
    """The envelope of the request that begins with ``head`` (its first ``HEAD`` bytes, or all of it). None: it has no
    known envelope. ``v2_only``: the connection has spoken v2."""
    view = memoryview(head)
    if not v2_only and len(view) > 2 and view[0] == _HEADER_TAG:
        return _v3_header(view)
    if len(view) < _WORD.size:
        return None
    version, opcode, flags = _WORD.unpack_from(view)
    op = _V2_OPS.get(flags & 0xFF if version == 0 else opcode)
    return None if op is None or version > v2.VERSION else RequestHeader(Dialect.V2, op, version=version)


def _v3_header(view: memoryview) -> RequestHeader | None:
    size = view[1]
    if size & 0x80 or len(view) < 2 + size:  # longer than any header there is
        return None
    header = pb.BKPacketHeader()
    try:
        header.MergeFromString(bytes(view[2 : 2 + size]))
    except DecodeError:
        return None
    if not header.IsInitialized():
        return None
    return RequestHeader(Dialect.V3, Operation(header.operation), header.txnId, header.version, header.priority)


def refusal(header: RequestHeader, head: Buffer) -> bytes | None:
    """The frame that answers "not authorized" to the request. None: the dialect has no such answer, so the connection
    must be closed without one, as Apache's bookie does."""
    if header.dialect is Dialect.V3:
        return v3.encode_reply(header, BareReply(Status.UNAUTHORIZED))
    try:
        if header.op is Operation.ADD:
            ledger, entry = _IDS.unpack_from(head, _WORD.size + KEY_SIZE)
            return v2.encode_reply(header, AddReply(Status.UNAUTHORIZED, LedgerId(ledger), EntryId(entry)))
        if header.op is Operation.READ:
            ledger, entry = _IDS.unpack_from(head, _WORD.size)
            return v2.encode_reply(header, ReadReply(Status.UNAUTHORIZED, LedgerId(ledger), EntryId(entry)))
    except StructError:
        pass
    return None
