"""How many bytes a request is charged with, which requests use the reserve, and what replaces a reply that is too
large."""

from __future__ import annotations

from typing import Final

from bookkeeper import wire
from bookkeeper.wire import Status

READ_CHARGE: Final = 16 * 1024
"""Bytes that a single read is charged with while it is in progress, because the size of its reply is not known."""

BATCH_CHARGE_MAX: Final = 1024 * 1024
"""The most bytes that a batch read is charged with."""


def goes_first(request: wire.Request) -> bool:
    """Whether the request may use the reserve: a fence (every read of a recovery is one), or a recovery add. What its
    header says of priority gives nothing: anybody may say it of any request."""
    match request:
        case wire.ReadEntry() | wire.BatchRead():
            return request.fence
        case wire.AddEntry():
            return request.recovery
        case _:
            return False


def reply_charge(request: wire.Request) -> int:
    """Bytes that the reply to ``request`` may take; 0 for a long poll, which may wait long."""
    match request:
        case wire.ReadEntry():
            return 0 if request.long_poll else READ_CHARGE
        case wire.BatchRead():
            return max(READ_CHARGE, min(request.size_max, BATCH_CHARGE_MAX))
        case wire.ReadLac() | wire.ListEntries():
            return READ_CHARGE
        case _:
            return 0


def too_large(reply: wire.Reply) -> wire.Reply:
    """The reply instead of one that does not fit into a frame."""
    match reply:
        case wire.ReadReply():
            return wire.ReadReply(Status.IO_ERROR, reply.ledger_id, reply.entry_id)
        case wire.BatchReply():
            return wire.BatchReply(Status.IO_ERROR, reply.ledger_id, reply.entry_id, reply.request_id)
        case wire.LacReply():
            if reply.lac_body is not None:
                return wire.LacReply(Status.OK, reply.ledger_id, reply.lac_body)
            return wire.LacReply(Status.IO_ERROR, reply.ledger_id)
        case _:
            return reply
