"""Turns frames of both dialects into requests and replies, and back. Pure: bytes in, values out.

Server: one :class:`DialectDetector` per connection (``detector.decode(body)``), then ``encode_reply(header, reply)``.
Client: ``encode_request(request, dialect, txn_id)`` and ``decode_reply(body, dialect)``.
``requests`` are the values, ``v2`` and ``v3`` the dialects, ``dialect`` tells them apart,
``envelope`` reads the first bytes, ``status`` has the outcomes, ``availability`` the lists of entries.

Plain adds, plain reads, and their replies go through :mod:`bookkeeper.codec` instead.
"""

from __future__ import annotations

from bookkeeper.codec.shapes import Dialect
from bookkeeper.wire.dialect import DialectDetector, decode_reply, encode_reply, encode_request, reply_pieces
from bookkeeper.wire.requests import (
    HIGH_PRIORITY,
    REQUEST_ID,
    AddEntry,
    AddReply,
    Auth,
    AuthReply,
    BareReply,
    BatchRead,
    BatchReply,
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
    asked_ledgers,
    failure,
    ledgers_dropped,
    ledgers_held,
    too_large,
)
from bookkeeper.wire.status import Status, error_of, status_of
from bookkeeper.wire.v3 import encode_notice, is_taken_notice

__all__ = [
    "HIGH_PRIORITY",
    "REQUEST_ID",
    "AddEntry",
    "AddReply",
    "Auth",
    "AuthReply",
    "BareReply",
    "BatchRead",
    "BatchReply",
    "Context",
    "Dialect",
    "DialectDetector",
    "ForceLedger",
    "ForceReply",
    "GetBookieInfo",
    "InfoReply",
    "LacReply",
    "ListEntries",
    "ListReply",
    "Operation",
    "ReadEntry",
    "ReadLac",
    "ReadReply",
    "RefusedFrame",
    "Reply",
    "Request",
    "RequestHeader",
    "StartTls",
    "StartTlsReply",
    "Status",
    "WriteLac",
    "WriteLacReply",
    "asked_ledgers",
    "decode_reply",
    "encode_notice",
    "encode_reply",
    "encode_request",
    "error_of",
    "failure",
    "is_taken_notice",
    "ledgers_dropped",
    "ledgers_held",
    "reply_pieces",
    "status_of",
    "too_large",
]
