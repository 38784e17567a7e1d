"""Protocol v2: fixed fields behind one packed word. All integers are big-endian; the frame's length is not shown.

     0         1         2         4
     +---------+---------+---------+------------------------------+
     | version | opcode  | flags   | body, by opcode              |     version 0: the word is the opcode alone
     +---------+---------+---------+------------------------------+

     requests
     ADD 1     master key: 20 bytes | entry: the rest, stored as it is
     READ 2    ledger id: i64 | entry id: i64 | master key: 20 bytes, or absent
     AUTH 3    AuthMessage (protobuf)
     BATCH 7   ledger id: i64 | entry id: i64 | request id: i64 | most entries: i32 | most bytes: i64 | key or absent

     replies: version and opcode of the request, flags 0
     AUTH      AuthMessage (protobuf)
     others    status: i32 | ledger id: i64 | entry id: i64, as asked for
     READ      ... | entry                       if the status is OK
     BATCH     ... | request id: i64 | [length: u32 | entry] ...

Any bytes decode to a request, a refusal or MalformedFrameError. A frame that Apache's bookie answers with an error is a
:class:`RefusedFrame`; a frame that makes it close the connection raises the exception. This decoder is stricter than
Apache's: an entry of 16 to 31 bytes, negative ids in an add, and a batch from entry -1 are bad requests.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final

from google.protobuf.message import DecodeError

from bookkeeper.codec.shapes import ENTRY_HEADER, KEY_SIZE, Dialect
from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.wire.bookkeeper_pb2 import AuthMessage
from bookkeeper.wire.requests import (
    HIGH_PRIORITY,
    AddEntry,
    AddReply,
    Auth,
    AuthReply,
    BatchRead,
    BatchReply,
    Operation,
    ReadEntry,
    ReadReply,
    RefusedFrame,
    Reply,
    Request,
    RequestHeader,
    failure,
)
from bookkeeper.wire.status import FROM_V2, TO_V2, Status

VERSION: Final = 2

FENCE: Final = 0x1
RECOVERY: Final = 0x2
PRIORITY: Final = 0x4

_OPS: Final = {1: Operation.ADD, 2: Operation.READ, 3: Operation.AUTH, 7: Operation.BATCH_READ}
_OPCODES: Final = {op: code for code, op in _OPS.items()}
_LENGTH: Final = Struct(">I")
_WORD: Final = Struct(">BBH")
_IDS: Final = Struct(">qq")
_BATCH: Final = Struct(">qqqiq")
_REPLY: Final = Struct(">iqq")
_REQUEST_ID: Final = Struct(">q")


# -- requests --------------------------------------------------------------------------------------------


def encode_request(request: Request) -> bytes:
    """The whole frame of a request.

    Raises:
        ValueError: v2 has no such request, or no such field of it.
    """
    match request:
        case AddEntry():
            if request.deferred_sync or len(request.master_key) != KEY_SIZE:
                raise ValueError("v2 has no deferred sync, and its master keys have 20 bytes")
            flags = RECOVERY * request.recovery | _priority(request.priority)
            return _frame(Operation.ADD, flags, request.master_key, request.entry)
        case ReadEntry():
            if request.piggyback or request.previous_lac is not None or request.timeout_ms is not None:
                raise ValueError("v2 has no long polls: use v3")
            flags = FENCE * request.fence | _priority(request.priority)
            ids = _IDS.pack(request.ledger_id, request.entry_id)
            return _frame(Operation.READ, flags, ids, _optional_key(request))
        case BatchRead():
            flags = FENCE * request.fence | _priority(request.priority)
            fixed = _BATCH.pack(
                request.ledger_id, request.first_entry, request.request_id, request.count_max, request.size_max
            )
            return _frame(Operation.BATCH_READ, flags, fixed, _optional_key(request))
        case Auth():
            return _frame(Operation.AUTH, 0, _auth_message(request))
    raise ValueError(f"v2 has no {type(request).__name__}")


def decode_request(body: Buffer) -> tuple[RequestHeader, Request] | RefusedFrame:
    """The request in a frame body, or what to answer instead.

    Raises:
        MalformedFrameError: the connection must be closed without an answer.
    """
    view = memoryview(body)
    try:
        version, op, flags = _decode_word(view)
        header = RequestHeader(Dialect.V2, op, version=version)
        if op is Operation.AUTH:
            return header, Auth(*_decode_auth(view[_WORD.size :]))
        if op is Operation.ADD:
            return _decode_add(header, flags, view)
        return _decode_read(header, flags, view)
    except StructError as exc:
        raise MalformedFrameError(f"a v2 request of {len(view)} bytes is too short for its fields") from exc


def _decode_add(header: RequestHeader, flags: int, view: memoryview) -> tuple[RequestHeader, Request] | RefusedFrame:
    at = _WORD.size + KEY_SIZE
    ledger_id, entry_id = _IDS.unpack_from(view, at)
    request = AddEntry(
        LedgerId(ledger_id),
        EntryId(entry_id),
        bytes(view[_WORD.size : at]),
        bytes(view[at:]),
        recovery=bool(flags & RECOVERY),
        priority=HIGH_PRIORITY if flags & PRIORITY else 0,
    )
    if header.version > VERSION:
        return _refuse(header, request, Status.BAD_VERSION)
    if len(request.entry) < ENTRY_HEADER or ledger_id < 0 or entry_id < 0:
        return _refuse(header, request, Status.BAD_REQUEST)
    return header, request


def _decode_read(header: RequestHeader, flags: int, view: memoryview) -> tuple[RequestHeader, Request] | RefusedFrame:
    at = _WORD.size + (_IDS if header.op is Operation.READ else _BATCH).size
    fence = bool(flags & FENCE)
    key = bytes(view[at : at + KEY_SIZE]) if len(view) >= at + KEY_SIZE else None
    if fence and header.version >= VERSION and key is None:
        raise MalformedFrameError("a fencing read has no master key")
    priority = HIGH_PRIORITY if flags & PRIORITY else 0
    request: ReadEntry | BatchRead
    if header.op is Operation.READ:
        ledger_id, entry_id = _IDS.unpack_from(view, _WORD.size)
        least = -1
        request = ReadEntry(LedgerId(ledger_id), EntryId(entry_id), key, fence, priority)
    else:
        ledger_id, entry_id, request_id, count_max, size_max = _BATCH.unpack_from(view, _WORD.size)
        least = 0
        request = BatchRead(
            LedgerId(ledger_id), EntryId(entry_id), request_id, count_max, size_max, key, fence, priority
        )
    if header.version > VERSION:
        return _refuse(header, request, Status.BAD_VERSION)
    if fence and header.version < VERSION:
        return _refuse(header, request, Status.UNAUTHORIZED)
    if ledger_id < 0:
        return _refuse(header, request, Status.NO_LEDGER)
    if entry_id < least:
        return _refuse(header, request, Status.BAD_REQUEST)
    return header, request


def _decode_word(view: memoryview) -> tuple[int, Operation, int]:
    version, opcode, flags = _WORD.unpack_from(view)
    if version == 0:
        opcode, flags = flags & 0xFF, 0
    if opcode not in _OPS:
        raise MalformedFrameError(f"v2 has no operation with the number {opcode}")
    return version, _OPS[opcode], flags


def _refuse(header: RequestHeader, request: Request, status: Status) -> RefusedFrame:
    return RefusedFrame(header, status, encode_reply(header, failure(request, status)))


# -- replies ---------------------------------------------------------------------------------------------


def encode_reply(header: RequestHeader, reply: Reply) -> bytes:
    """The whole frame of a reply, under the version and opcode of its request.

    Raises:
        ValueError: v2 has no such reply. An AUTH reply can only be OK: it has no status to refuse with.
    """
    match reply:
        case AddReply():
            fields = _REPLY.pack(TO_V2[reply.status], reply.ledger_id, reply.entry_id)
            return _reply_frame(header.version, Operation.ADD, fields)
        case ReadReply():
            fields = _REPLY.pack(TO_V2[reply.status], reply.ledger_id, reply.entry_id)
            return _reply_frame(header.version, Operation.READ, fields, reply.entry or b"")
        case BatchReply():
            return b"".join((batch_reply_head(header, reply), reply.body))
        case AuthReply() if reply.status is Status.OK:
            return _reply_frame(VERSION, Operation.AUTH, _auth_message(reply))
    raise ValueError(f"v2 has no {type(reply).__name__} with status {reply.status.name}")


def batch_reply_head(header: RequestHeader, reply: BatchReply) -> bytes:
    """What stands before the entries in the frame of a reply."""
    fields = _REPLY.pack(TO_V2[reply.status], reply.ledger_id, reply.entry_id)
    request_id = _REQUEST_ID.pack(reply.request_id)
    return _reply_frame(header.version, Operation.BATCH_READ, fields, request_id, follows=len(reply.body))


def decode_reply(body: Buffer) -> tuple[RequestHeader, Reply]:
    """The reply in a frame body. The entries of a batch read are not copied: they are a view of ``body``.

    Raises:
        MalformedFrameError: the connection must be closed.
    """
    view = memoryview(body)
    try:
        version, op, _ = _decode_word(view)
        header = RequestHeader(Dialect.V2, op, version=version)
        if op is Operation.AUTH:
            return header, AuthReply(Status.OK, *_decode_auth(view[_WORD.size :]))
        number, ledger, entry = _REPLY.unpack_from(view, _WORD.size)
        if number not in FROM_V2:
            raise MalformedFrameError(f"v2 has no status with the number {number}")
        status, ledger_id, entry_id = FROM_V2[number], LedgerId(ledger), EntryId(entry)
        rest = view[_WORD.size + _REPLY.size :]
        if op is Operation.BATCH_READ:
            (request_id,) = _REQUEST_ID.unpack_from(rest)
            return header, BatchReply(status, ledger_id, entry_id, request_id, rest[_REQUEST_ID.size :])
        if rest and (op is Operation.ADD or status is not Status.OK):
            raise MalformedFrameError(f"a v2 reply without an entry is followed by {len(rest)} bytes")
        if op is Operation.ADD:
            return header, AddReply(status, ledger_id, entry_id)
        return header, ReadReply(status, ledger_id, entry_id, bytes(rest) if status is Status.OK else None)
    except StructError as exc:
        raise MalformedFrameError(f"a v2 reply of {len(view)} bytes is too short for its fields") from exc


# -- shared ----------------------------------------------------------------------------------------------


def _priority(priority: int) -> int:
    return PRIORITY if priority > 0 else 0


def _optional_key(request: ReadEntry | BatchRead) -> bytes:
    key = request.master_key
    if (key is None and request.fence) or (key is not None and len(key) != KEY_SIZE):
        raise ValueError("a master key has 20 bytes, and a fencing read needs one")
    return key or b""


def _auth_message(message: Auth | AuthReply) -> bytes:
    plugin = message.plugin.encode("utf-8", "surrogateescape")
    return AuthMessage(authPluginName=plugin, payload=message.payload).SerializeToString()


def _decode_auth(data: memoryview) -> tuple[str, bytes]:
    message = AuthMessage()
    try:
        message.MergeFromString(bytes(data))
    except DecodeError as exc:
        raise MalformedFrameError("an authentication message cannot be decoded") from exc
    if not message.IsInitialized():
        raise MalformedFrameError("an authentication message lacks a field")
    return message.authPluginName.decode("utf-8", "surrogateescape"), message.payload


def _frame(op: Operation, flags: int, *parts: bytes) -> bytes:
    size = _WORD.size + sum(map(len, parts))
    return b"".join((_LENGTH.pack(size), _WORD.pack(VERSION, _OPCODES[op], flags), *parts))


def _reply_frame(version: int, op: Operation, *parts: Buffer, follows: int = 0) -> bytes:
    """The frame, except for so many bytes at its end that follow."""
    word = _WORD.pack(version, _OPCODES[op], 0) if version else _LENGTH.pack(_OPCODES[op])
    return b"".join((_LENGTH.pack(len(word) + sum(map(len, parts)) + follows), word, *parts))
