"""Which calls leave a line in the gateway's audit log, and what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from bookkeeper.audit import AuditAction
from bookkeeper.gateways.authentication import UnauthenticatedError
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.gateway_audit import GatewayAudit
from segments.errors import StreamAccessError
from segments.gateway.guard.grpc_call import CallEndedError
from segments.protocol import segments_pb2 as pb

NOTED: Final[Mapping[str, AuditAction]] = {
    "Streams.Create": AuditAction.CREATE,
    "Streams.UpdateConfig": AuditAction.ADMINISTER,
    "Streams.Rename": AuditAction.ADMINISTER,
    "Streams.Delete": AuditAction.DELETE,
    "Streams.Seal": AuditAction.ADMINISTER,
    "Streams.Import": AuditAction.CREATE,
    "Segments.Roll": AuditAction.ADMINISTER,
    "Segments.Truncate": AuditAction.DELETE,
    "Segments.ApplyRetention": AuditAction.DELETE,
    "Segments.PutHold": AuditAction.ADMINISTER,
    "Segments.DeleteHold": AuditAction.ADMINISTER,
    "Cursors.Create": AuditAction.CREATE,
    "Cursors.Delete": AuditAction.DELETE,
    "Cursors.Reset": AuditAction.ADMINISTER,
    "Cursors.Restore": AuditAction.ADMINISTER,
    "Cursors.Skip": AuditAction.ADMINISTER,
}
"""Calls that make, change or delete, by service and name. What they are about is in their first request."""


class CallAudit:
    """Makes the lines of calls."""

    def __init__(self, audit: GatewayAudit) -> None:
        self._audit = audit

    def admitted(self, principal: Caller | None, host: str) -> None:
        """A call has shown good credentials, or nobody is asked."""
        if principal is not None:
            self._audit.admitted(principal.name, host)

    def answered(
        self, key: str, principal: Caller | None, host: str, request: Any, error: BaseException | None
    ) -> None:
        """A call has ended, by an error or well. ``request``: its first one, None if none was received."""
        if isinstance(error, UnauthenticatedError):
            self._audit.refused(host, error.why, error.claimed)
            return
        who = "" if principal is None else principal.name
        if isinstance(error, StreamAccessError):
            why = error.why if isinstance(error, CallEndedError) else str(error)
            self._audit.note(
                AuditAction.DENY, who, host, _on(key, error.stream or "all streams"), allowed=False, reason=why
            )
        elif request is not None and (what := _action(key, request)) is not None:
            reason = "" if error is None else f"{type(error).__name__}: {error}"
            if isinstance(error, asyncio.CancelledError | GeneratorExit):
                reason = "the call was ended before its answer"
            self._audit.note(what, who, host, _on(key, _named(request)), allowed=True, reason=reason)


def _action(key: str, request: Any) -> AuditAction | None:
    if key == "Streams.Check":
        return AuditAction.ADMINISTER if request.repair else None
    return None if getattr(_head(request), "dry_run", False) else NOTED.get(key)


def _head(request: Any) -> Any:
    """Where a request says what it is about: the first one of an import in a part of its own."""
    return request.open if isinstance(request, pb.ImportRequest) else request


def _named(request: Any) -> str:
    """What a request is about: the stream, and the new name or the cursor where there is one."""
    head = _head(request)
    words = [str(getattr(head, "stream", "") or ("as in the file" if head is not request else "all streams"))]
    for field in ("new_name", "name"):
        if value := getattr(head, field, ""):
            words.append(f"{field} {value}")
    return ", ".join(words)


def _on(key: str, named: str) -> str:
    return f"stream {named} ({key})"
