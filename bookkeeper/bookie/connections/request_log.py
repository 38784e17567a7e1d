"""Log lines about requests that were refused, that failed, or that took long, with what their clients say of them.

A v3 request may carry pairs of text (``requestContext``: what a Java client keeps in its logging context, a user or a
job say). They are the client's words: escaped, cut, few. At most one line a second of each kind; the next one
says how many there were in between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from bookkeeper import wire
from bookkeeper.codec import Run
from bookkeeper.rate_limited_log import RateLimit
from bookkeeper.wire import Status

log = logging.getLogger(__name__)

SLOW_S: Final = 1.0
"""A request, long polls apart, that took this long is worth a line."""

CONTEXT_MAX: Final = 400
"""Characters of context in a line."""

_FAILED = frozenset({Status.IO_ERROR, Status.UNKNOWN_STATE})
ANSWERED: Final = frozenset({Status.OK, Status.NO_ENTRY, Status.NO_LEDGER})
"""Nothing to tell of, unless it was slow."""


class RequestLog:
    """Of one bookie."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._limit = RateLimit()

    def request(
        self, peer: str, header: wire.RequestHeader, request: wire.Request | None, status: Status, took: float
    ) -> None:
        """A request that was no plain add is answered after ``took`` seconds; None: it was not understood."""
        slow = took >= SLOW_S and not (isinstance(request, wire.ReadEntry) and request.long_poll)
        if status in ANSWERED and not slow:
            return
        self._line(status, f"{header.op.name}{_of(request)}", peer, took, header.context)

    def run(self, peer: str, run: Run, first: int, status: Status, took: float) -> None:
        """A run of plain adds is refused, or answered after ``took`` seconds."""
        if status is Status.OK and took < SLOW_S:
            return
        what = f"ADD of {run.i1 - run.i0} entries from {first} on of ledger {run.ledger_id}"
        self._line(status, what, peer, took, ())

    def _line(self, status: Status, what: str, peer: str, took: float, context: wire.Context) -> None:
        kind = "slow" if status in ANSWERED else "failed" if status in _FAILED else "refused"
        left_out = self._limit.admit(self._now(), kind)
        if left_out is None:
            return
        more = f" ({left_out} more were {kind})" if left_out else ""
        told = f" [{shown(context)}]" if context else ""
        log.warning("%s: %s from %s: %s after %.1f ms%s%s", kind, what, peer, status.name, took * 1000, told, more)


def shown(context: wire.Context) -> str:
    """Pairs of text as one line of printable ASCII; quotation marks and brackets cannot be forged, either."""
    text = ", ".join(f'{_escaped(key)}="{_escaped(value)}"' for key, value in context)
    return text if len(text) <= CONTEXT_MAX else text[: CONTEXT_MAX - 3] + "..."


def _escaped(text: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\[]' else f"\\x{byte:02x}" for byte in text)


def _of(request: wire.Request | None) -> str:
    match request:
        case wire.AddEntry() | wire.ReadEntry():
            return f" of entry {request.entry_id} of ledger {request.ledger_id}"
        case wire.BatchRead():
            return f" from entry {request.first_entry} on of ledger {request.ledger_id}"
        case wire.ReadLac() | wire.WriteLac() | wire.ForceLedger() | wire.ListEntries():
            return f" of ledger {request.ledger_id}"
        case _:
            return ""
