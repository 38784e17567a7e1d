"""Log lines about requests that were refused, failed or took long.

Each line has a request id that the client's own log has, too: the client's name for the operation, or else its address
and the number of the request on its connection (``HOST:PORT/17``; ``HOST:PORT/3:40`` is entry 40 of its writer 3).

A v3 request may carry pairs of text (``requestContext``), which a Java client takes from its logging context: for
instance a user or a job. The client chooses them, so the log escapes, cuts and limits them. There is at most one line a
second of each kind; the next line says how many were left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from bookkeeper import wire
from bookkeeper.codec import STREAM_SHIFT, Adds, Run
from bookkeeper.errors import MalformedFrameError
from bookkeeper.rate_limited_log import RateLimit
from bookkeeper.wire import Dialect, Status

log = logging.getLogger(__name__)

SLOW_S: Final = 1.0
"""Seconds from which on a request counts as slow and is logged. Long polls never do."""

CONTEXT_MAX: Final = 400
"""The most characters of context in a line."""

_FAILED = frozenset({Status.IO_ERROR, Status.UNKNOWN_STATE})
ANSWERED: Final = frozenset({Status.OK, Status.NO_ENTRY, Status.NO_LEDGER})
"""Replies that are logged only if they were slow."""


class RequestLog:
    """The log lines about one bookie's requests."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._limit = RateLimit()

    def log_request(
        self, peer: str, header: wire.RequestHeader, request: wire.Request | None, status: Status, took: float
    ) -> None:
        """A request is answered after ``took`` seconds; ``log_request`` is None if it was not understood."""
        slow = took >= SLOW_S and not (isinstance(request, wire.ReadEntry) and request.long_poll)
        if status in ANSWERED and not slow:
            return
        what = f"{header.op.name}{_subject_of(request)} from {peer}"
        self._log_line(status, what, lambda: request_id(peer, header), took, header.context)

    def log_run(self, peer: str, run: Run, adds: Adds, status: Status, took: float) -> None:
        """A run of plain adds is answered with ``status`` after ``took`` seconds."""
        if status is Status.OK and took < SLOW_S:
            return
        first = adds.entry_ids[run.i0]
        what = f"ADD of entries {first} to {first + run.i1 - run.i0 - 1} of ledger {run.ledger_id} from {peer}"
        self._log_line(status, what, lambda: _id_of_run(peer, run, adds), took, ())

    def _log_line(
        self, status: Status, what: str, named: Callable[[], str], took: float, context: wire.Context
    ) -> None:
        kind = _kind(status)
        left_out = self._limit.admit(self._now(), kind)
        if left_out is None:
            return
        more = f" (not logged since the last such line: {left_out})" if left_out else ""
        told = f" [{printable(context)}]" if context else ""
        level = logging.INFO if status is Status.FENCED else logging.WARNING
        name, ms = named(), took * 1000
        fields = {"request_id": name, "status": status.name, "took_ms": round(ms, 1)}
        text = "%s: %s: %s after %.1f ms [request %s]%s%s"
        log.log(level, text, kind, what, status.name, ms, name, told, more, extra=fields)


def request_id(peer: str, header: wire.RequestHeader) -> str:
    """The id of a request in logs: the client's name for the operation, or else its number on the connection from
    ``peer``. The client chooses the name, so it need not be unique, and nothing depends on it."""
    for key, value in header.context:
        if key == wire.REQUEST_ID and value:
            return _escaped(value)
    return _numbered(peer, header)


def _numbered(peer: str, header: wire.RequestHeader) -> str:
    if header.dialect is Dialect.V2:
        return peer
    stream, entry = header.txn_id >> STREAM_SHIFT, header.txn_id & ((1 << STREAM_SHIFT) - 1)
    return f"{peer}/{stream}:{entry}" if stream > 0 else f"{peer}/{header.txn_id}"


def _id_of_run(peer: str, run: Run, adds: Adds) -> str:
    """The id of a run's first add, by the reply that was made for it. A chunk may have adds of both dialects."""
    start, end = adds.ack_ends[run.i0 - 1] if run.i0 else 0, adds.ack_ends[run.i0]
    try:
        header, _ = wire.decode_reply(memoryview(adds.acks)[start + 4 : end], Dialect.V3)
    except MalformedFrameError:
        return peer  # it is of v2
    return _numbered(peer, header)


def _kind(status: Status) -> str:
    if status is Status.FENCED:  # ordinary: a reader has recovered the ledger, and its former writer goes on
        return "fenced"
    return "slow" if status in ANSWERED else "failed" if status in _FAILED else "refused"


def printable(context: wire.Context) -> str:
    """Pairs of text as one line of printable ASCII. A client cannot forge quotation marks or brackets."""
    text = ", ".join(f'{_escaped(key)}="{_escaped(value)}"' for key, value in context)
    return text if len(text) <= CONTEXT_MAX else text[: CONTEXT_MAX - 3] + "..."


def _escaped(text: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\[]' else f"\\x{byte:02x}" for byte in text)


def _subject_of(request: wire.Request | None) -> str:
    match request:
        case wire.AddEntry() | wire.ReadEntry():
            return f" of entry {request.entry_id} of ledger {request.ledger_id}"
        case wire.BatchRead():
            return f" of ledger {request.ledger_id} from entry {request.first_entry} on"
        case wire.ReadLac() | wire.WriteLac() | wire.ForceLedger() | wire.ListEntries():
            return f" of ledger {request.ledger_id}"
        case _:
            return ""
