"""Protocol v3: every frame body is one ``Request`` or ``Response`` of ``bookkeeper.proto``.

The encoder writes fields in ascending order, as Apache's 4.17 does; the decoder takes any order and skips unknown ones.
A message with an unknown operation, version or status, or without a required field, is no v3 message at all.

A frame that Apache's bookie answers with an error before it looks at its data is a :class:`RefusedFrame`: another
version, an operation without a message, an add without one, a fence without a key, a body too short for its ids. This
decoder is stricter than Apache's: the ids of an add or an explicit LAC must be those in its body, and none may be
negative; a master key has 20 bytes wherever one is needed; an explicit LAC's body is not longer than its ids and the
longest digest. (Every client makes the key by SHA-1, also of an empty password, and such a body. A read without a fence
needs no key, and whatever it brings is not looked at.)
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final, TypeVar

from google.protobuf.message import DecodeError, Message

from bookkeeper.codec.shapes import ENTRY_HEADER, KEY_SIZE, LAC_BODY_MAX, Dialect
from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.wire import bookkeeper_pb2 as pb
from bookkeeper.wire.requests import (
    CONTEXT_PAIRS,
    CONTEXT_TEXT,
    AddEntry,
    AddReply,
    Auth,
    AuthReply,
    BareReply,
    Context,
    ForceLedger,
    ForceReply,
    GetBookieInfo,
    InfoReply,
    LacReply,
    ListEntries,
    ListReply,
    Operation,
    ReadEntry,
    ReadLac,
    ReadReply,
    RefusedFrame,
    Reply,
    Request,
    RequestHeader,
    StartTls,
    StartTlsReply,
    WriteLac,
    WriteLacReply,
    failure,
)
from bookkeeper.wire.status import FROM_V3, TO_V3, Status

VERSION: Final = 3
DEFERRED_SYNC: Final = 0x1

_M = TypeVar("_M", bound=Message)
_FIRST_TAG: Final = 8
_IDS: Final = Struct(">qq")
_LENGTH: Final = Struct(">I")
_NO_MESSAGE: Final = (Operation.RANGE_READ, Operation.RANGE_ADD, Operation.BATCH_READ)


# -- requests --------------------------------------------------------------------------------------------


def encode_request(request: Request, txn_id: int, context: Context = ()) -> bytes:
    """The whole frame of a request, with pairs of text for the bookie's log.

    Raises:
        ValueError: v3 has no such request (batch reads), or a number does not fit its field.
    """
    priority = getattr(request, "priority", 0)
    match request:
        case AddEntry():
            message = _request(Operation.ADD, txn_id, priority)
            _fill_add(message.addRequest, request)
        case ReadEntry():
            message = _request(Operation.READ, txn_id, priority)
            _fill_read(message.readRequest, request)
        case ReadLac():
            message = _request(Operation.READ_LAC, txn_id)
            message.readLacRequest.ledgerId = request.ledger_id
        case WriteLac():
            message = _request(Operation.WRITE_LAC, txn_id)
            to = message.writeLacRequest
            to.ledgerId, to.lac, to.masterKey, to.body = (
                request.ledger_id,
                request.lac,
                request.master_key,
                request.body,
            )
        case ForceLedger():
            message = _request(Operation.FORCE_LEDGER, txn_id)
            message.forceLedgerRequest.ledgerId = request.ledger_id
        case GetBookieInfo():
            message = _request(Operation.BOOKIE_INFO, txn_id)
            message.getBookieInfoRequest.requested = request.requested
            if request.closed_ledger is not None:
                message.getBookieInfoRequest.closedLedgerId = request.closed_ledger
        case ListEntries():
            message = _request(Operation.LIST_ENTRIES, txn_id)
            message.getListOfEntriesOfLedgerRequest.ledgerId = request.ledger_id
        case Auth():
            message = _request(Operation.AUTH, txn_id)
            message.authRequest.authPluginName = _plugin(request.plugin)
            message.authRequest.payload = request.payload
        case StartTls():
            message = _request(Operation.START_TLS, txn_id)
            message.startTLSRequest.SetInParent()
        case _:
            raise ValueError(f"v3 has no {type(request).__name__}")
    for key, value in context:
        message.requestContext.add(key=key, value=value)
    return frame(message.SerializeToString())


def frame(body: Buffer) -> bytes:
    """The frame of ``body``: its length, which does not count itself, then ``body``."""
    return _LENGTH.pack(len(body)) + body


def _request(op: Operation, txn_id: int, priority: int = 0) -> pb.Request:
    message = pb.Request()
    _fill_header(message.header, VERSION, op, txn_id, priority)
    return message


def _fill_header(header: pb.BKPacketHeader, version: int, op: Operation, txn_id: int, priority: int) -> None:
    header.version = version  # type: ignore[assignment]
    header.operation = op.value  # type: ignore[assignment]
    header.txnId = txn_id
    if priority:
        header.priority = priority


def _fill_add(to: pb.AddRequest, request: AddEntry) -> None:
    to.ledgerId, to.entryId = request.ledger_id, request.entry_id
    to.masterKey, to.body = request.master_key, request.entry
    if request.deferred_sync:
        to.writeFlags = DEFERRED_SYNC
    if request.recovery:
        to.flag = pb.AddRequest.RECOVERY_ADD


def _fill_read(to: pb.ReadRequest, request: ReadEntry) -> None:
    to.ledgerId, to.entryId = request.ledger_id, request.entry_id
    if request.master_key is not None:
        to.masterKey = request.master_key
    if request.previous_lac is not None:
        to.previousLAC = request.previous_lac
    if request.timeout_ms is not None:
        to.timeOut = request.timeout_ms
    if request.fence and request.piggyback:
        raise ValueError("a read has one flag in v3: it can fence or piggyback, not both")
    if request.fence:
        to.flag = pb.ReadRequest.FENCE_LEDGER
    elif request.piggyback:
        to.flag = pb.ReadRequest.ENTRY_PIGGYBACK


def decode_request(body: Buffer) -> tuple[RequestHeader, Request] | RefusedFrame | None:
    """The request in a frame body, or the refusal to answer instead; None if it is no v3 request, and so v2."""
    message = _parse(pb.Request(), body)
    if message is None:
        return None
    op = Operation(message.header.operation)
    sent = message.header
    header = RequestHeader(Dialect.V3, op, sent.txnId, sent.version, sent.priority, _context(message))
    if op in _NO_MESSAGE:
        return _refuse(header, BareReply(Status.BAD_REQUEST))
    request, bad = _REQUESTS[op](message)
    if header.version != VERSION and op not in (Operation.AUTH, Operation.START_TLS):
        return _refuse(header, failure(request, Status.BAD_VERSION))
    return (header, request) if bad is None else _refuse(header, failure(request, bad))


def _context(message: pb.Request) -> Context:
    if not message.requestContext:
        return ()
    pairs = message.requestContext[:CONTEXT_PAIRS]
    return tuple((pair.key[:CONTEXT_TEXT], pair.value[:CONTEXT_TEXT]) for pair in pairs)


def _refuse(header: RequestHeader, reply: Reply) -> RefusedFrame:
    status: Status = reply.status
    return RefusedFrame(header, status, encode_reply(header, reply))


_Decoded = tuple[Request, Status | None]
"""A request, and the status with which to refuse it; None: it is good."""


def _decode_add(message: pb.Request) -> _Decoded:
    sent = message.addRequest
    ids = sent.ledgerId, sent.entryId
    request = AddEntry(
        LedgerId(ids[0]),
        EntryId(ids[1]),
        sent.masterKey,
        sent.body,
        recovery=sent.flag == pb.AddRequest.RECOVERY_ADD and sent.HasField("flag"),
        deferred_sync=bool(sent.writeFlags & DEFERRED_SYNC),
        priority=message.header.priority,
    )
    good = len(sent.body) >= ENTRY_HEADER and min(ids) >= 0 and _IDS.unpack_from(sent.body) == ids
    return request, _wrong_key(sent.masterKey) if good else Status.BAD_REQUEST


def _decode_read(message: pb.Request) -> _Decoded:
    sent = message.readRequest
    flag = sent.flag if sent.HasField("flag") else 0
    request = ReadEntry(
        LedgerId(sent.ledgerId),
        EntryId(sent.entryId),
        sent.masterKey if sent.HasField("masterKey") else None,
        fence=flag == pb.ReadRequest.FENCE_LEDGER,
        priority=message.header.priority,
        previous_lac=sent.previousLAC if sent.HasField("previousLAC") else None,
        timeout_ms=sent.timeOut if sent.HasField("timeOut") else None,
        piggyback=flag == pb.ReadRequest.ENTRY_PIGGYBACK,
    )
    if request.fence and (request.master_key is None or _wrong_key(request.master_key)):
        return request, Status.UNAUTHORIZED
    if request.ledger_id < 0:
        return request, Status.NO_LEDGER
    return request, None if request.entry_id >= -1 else Status.BAD_REQUEST


def _decode_write_lac(message: pb.Request) -> _Decoded:
    sent = message.writeLacRequest
    request = WriteLac(LedgerId(sent.ledgerId), sent.lac, sent.masterKey, sent.body)
    ids = sent.ledgerId, sent.lac
    good = _IDS.size <= len(sent.body) <= LAC_BODY_MAX and ids[0] >= 0 and ids[1] >= -1
    good = good and _IDS.unpack_from(sent.body) == ids
    return request, _wrong_key(sent.masterKey) if good else Status.BAD_REQUEST


def _wrong_key(key: bytes) -> Status | None:
    """The status with which to refuse a request that needs a key and brings this one; None: it may be the right one."""
    return None if len(key) == KEY_SIZE else Status.UNAUTHORIZED


def _decode_read_lac(message: pb.Request) -> _Decoded:
    ledger_id = LedgerId(message.readLacRequest.ledgerId)
    return ReadLac(ledger_id), None if ledger_id >= 0 else Status.NO_ENTRY


def _decode_force(message: pb.Request) -> _Decoded:
    ledger_id = LedgerId(message.forceLedgerRequest.ledgerId)
    return ForceLedger(ledger_id), None if ledger_id >= 0 else Status.BAD_REQUEST


def _decode_info(message: pb.Request) -> _Decoded:
    asked = message.getBookieInfoRequest
    closed = LedgerId(asked.closedLedgerId) if asked.HasField("closedLedgerId") else None
    return GetBookieInfo(asked.requested, closed), None


def _decode_list(message: pb.Request) -> _Decoded:
    ledger_id = LedgerId(message.getListOfEntriesOfLedgerRequest.ledgerId)
    return ListEntries(ledger_id), None


def _decode_auth(message: pb.Request) -> _Decoded:
    sent = message.authRequest
    request = Auth(sent.authPluginName.decode("utf-8", "surrogateescape"), sent.payload)
    return request, None if message.HasField("authRequest") else Status.BAD_REQUEST


def _decode_start_tls(message: pb.Request) -> _Decoded:
    return StartTls(), None


_REQUESTS: Final[dict[Operation, Callable[[pb.Request], _Decoded]]] = {
    Operation.READ: _decode_read,
    Operation.ADD: _decode_add,
    Operation.AUTH: _decode_auth,
    Operation.WRITE_LAC: _decode_write_lac,
    Operation.READ_LAC: _decode_read_lac,
    Operation.BOOKIE_INFO: _decode_info,
    Operation.START_TLS: _decode_start_tls,
    Operation.FORCE_LEDGER: _decode_force,
    Operation.LIST_ENTRIES: _decode_list,
}


# -- replies ---------------------------------------------------------------------------------------------


def encode_reply(header: RequestHeader, reply: Reply) -> bytes:
    """The whole frame of a reply: version 3, with the operation and the transaction id of its request.

    The outer and the inner status are the same. A :class:`BareReply` repeats the request's header as it was, priority
    included.

    Raises:
        ValueError: v3 has no such reply (batch reads), or a number does not fit its field.
    """
    message = pb.Response()
    if isinstance(reply, BareReply):
        _fill_header(message.header, header.version, header.op, header.txn_id, header.priority)
    else:
        _fill_header(message.header, VERSION, header.op, header.txn_id, 0)
    status = TO_V3[reply.status]
    message.status = status  # type: ignore[assignment]
    match reply:
        case AddReply():
            _fill(message.addResponse, status, ledgerId=reply.ledger_id, entryId=reply.entry_id)
        case ReadReply():
            _fill(
                message.readResponse,
                status,
                ledgerId=reply.ledger_id,
                entryId=reply.entry_id,
                body=reply.entry,
                maxLAC=reply.max_lac,
                lacUpdateTimestamp=reply.lac_timestamp_ms,
            )
        case LacReply():
            to = message.readLacResponse
            _fill(to, status, ledgerId=reply.ledger_id, lacBody=reply.lac_body, lastEntryBody=reply.last_entry)
        case WriteLacReply():
            _fill(message.writeLacResponse, status, ledgerId=reply.ledger_id)
        case ForceReply():
            _fill(message.forceLedgerResponse, status, ledgerId=reply.ledger_id)
        case InfoReply():
            _fill(message.getBookieInfoResponse, status, totalDiskCapacity=reply.total, freeDiskSpace=reply.free)
        case ListReply():
            _fill(
                message.getListOfEntriesOfLedgerResponse,
                status,
                ledgerId=reply.ledger_id,
                availabilityOfEntriesOfLedger=reply.availability,
            )
        case AuthReply():
            message.authResponse.authPluginName = _plugin(reply.plugin)
            message.authResponse.payload = reply.payload
        case StartTlsReply():
            message.startTLSResponse.SetInParent()
        case BareReply():
            pass
        case _:
            raise ValueError(f"v3 has no {type(reply).__name__}")
    return frame(message.SerializeToString())


def _fill(to: Any, status: int, **fields: int | bytes | None) -> None:
    to.status = status
    for name, value in fields.items():
        if value is not None:
            setattr(to, name, value)


def decode_reply(body: Buffer) -> tuple[RequestHeader, Reply]:
    """The reply in a frame body. Its status is the outer one, or the inner one if the outer one is OK.

    Raises:
        MalformedFrameError: the connection must be closed.
    """
    message = _parse(pb.Response(), body)
    if message is None:
        raise MalformedFrameError(f"a frame of {len(body)} bytes is no v3 reply")
    sent = message.header
    op = Operation(sent.operation)
    header = RequestHeader(Dialect.V3, op, sent.txnId, sent.version, sent.priority)
    inner = _INNER.get(op)
    if inner is None or not message.HasField(inner):
        return header, BareReply(FROM_V3[message.status])
    return header, _REPLIES[op](getattr(message, inner), message.status)


def _status(outer: int, inner: int) -> Status:
    return FROM_V3[outer or inner]


def _optional(message: Any, name: str) -> Any:
    return getattr(message, name) if message.HasField(name) else None


_INNER: Final[dict[Operation, str]] = {
    Operation.READ: "readResponse",
    Operation.ADD: "addResponse",
    Operation.AUTH: "authResponse",
    Operation.WRITE_LAC: "writeLacResponse",
    Operation.READ_LAC: "readLacResponse",
    Operation.BOOKIE_INFO: "getBookieInfoResponse",
    Operation.START_TLS: "startTLSResponse",
    Operation.FORCE_LEDGER: "forceLedgerResponse",
    Operation.LIST_ENTRIES: "getListOfEntriesOfLedgerResponse",
}

_REPLIES: Final[dict[Operation, Callable[[Any, int], Reply]]] = {
    Operation.READ: lambda m, outer: ReadReply(
        _status(outer, m.status),
        LedgerId(m.ledgerId),
        EntryId(m.entryId),
        _optional(m, "body"),
        _optional(m, "maxLAC"),
        _optional(m, "lacUpdateTimestamp"),
    ),
    Operation.ADD: lambda m, outer: AddReply(_status(outer, m.status), LedgerId(m.ledgerId), EntryId(m.entryId)),
    Operation.AUTH: lambda m, outer: AuthReply(
        FROM_V3[outer], m.authPluginName.decode("utf-8", "surrogateescape"), m.payload
    ),
    Operation.WRITE_LAC: lambda m, outer: WriteLacReply(_status(outer, m.status), LedgerId(m.ledgerId)),
    Operation.READ_LAC: lambda m, outer: LacReply(
        _status(outer, m.status), LedgerId(m.ledgerId), _optional(m, "lacBody"), _optional(m, "lastEntryBody")
    ),
    Operation.BOOKIE_INFO: lambda m, outer: InfoReply(
        _status(outer, m.status), _optional(m, "totalDiskCapacity"), _optional(m, "freeDiskSpace")
    ),
    Operation.START_TLS: lambda m, outer: StartTlsReply(FROM_V3[outer]),
    Operation.FORCE_LEDGER: lambda m, outer: ForceReply(_status(outer, m.status), LedgerId(m.ledgerId)),
    Operation.LIST_ENTRIES: lambda m, outer: ListReply(
        _status(outer, m.status), LedgerId(m.ledgerId), _optional(m, "availabilityOfEntriesOfLedger")
    ),
}


# -- notices ---------------------------------------------------------------------------------------------

_NOTICE_TXN: Final = 0
"""The transaction id of notices; no other request has it, and no stream."""


def encode_notice(request: WriteLac | GetBookieInfo) -> bytes:
    """The whole frame of a request whose reply nobody waits for. The same bytes may go to any number of bookies."""
    return encode_request(request, _NOTICE_TXN)


_TAKEN: Final = frozenset(
    encode_reply(RequestHeader(Dialect.V3, op, _NOTICE_TXN), reply)[4:14]
    for op, reply in (
        (Operation.WRITE_LAC, WriteLacReply(Status.OK, LedgerId(0))),
        (Operation.BOOKIE_INFO, InfoReply(Status.OK)),
    )
)
"""Version, operation, transaction id and OK, as every bookie writes them."""


def is_taken_notice(body: Buffer) -> bool:
    """Whether this frame body only says that a bookie took a notice. It is told by its beginning, without decoding it;
    one that is written in another way is not recognised, and is a reply that nobody waits for."""
    return bytes(body[:10]) in _TAKEN


# -- shared ----------------------------------------------------------------------------------------------


def _parse(message: _M, body: Buffer) -> _M | None:
    if not len(body) or body[0] < _FIRST_TAG:
        return None
    try:
        message.MergeFromString(bytes(body))
    except DecodeError:
        return None
    return message if message.IsInitialized() else None


def _plugin(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
