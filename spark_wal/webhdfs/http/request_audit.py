"""Which requests leave a line in the gateway's audit log. Knows no HTTP library."""

from __future__ import annotations

from typing import Final

from bookkeeper.audit import AuditAction
from bookkeeper.gateways.authentication import UnauthenticatedError
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.gateway_audit import GatewayAudit
from spark_wal.webhdfs.http.oauth2 import TokenGrant
from spark_wal.webhdfs.http.operations import operation_name
from spark_wal.webhdfs.http.request import Reply, Request

NOTED: Final = {
    "DELETE": AuditAction.DELETE,
    "SETPERMISSION": AuditAction.ADMINISTER,
    "SETOWNER": AuditAction.ADMINISTER,
}
"""Operations that are noted also if they are allowed. Files come and go by the thousand: only their end is noted."""


class RequestAudit:
    """Makes the lines of requests. ``host`` is where they come from."""

    def __init__(self, audit: GatewayAudit) -> None:
        self._audit = audit

    def admitted(self, principal: Caller | None, host: str | None) -> None:
        """A request has shown good credentials."""
        if principal is not None:
            self._audit.admitted(principal.name, host or "")

    def refused(self, host: str | None, error: UnauthenticatedError) -> None:
        """A request has shown no good credentials."""
        self._audit.refused(host or "", error.why, error.claimed)

    def denied(self, principal: Caller | None, host: str | None, on: str, reason: str) -> None:
        """Somebody who is known may not do this, or not any more."""
        who = "" if principal is None else principal.name
        self._audit.note(AuditAction.DENY, who, host or "", on, allowed=False, reason=reason)

    def dropped(self, host: str, reason: str) -> None:
        """A connection ends because of its credential."""
        self._audit.refused(host, reason)

    def granted(self, given: TokenGrant, host: str | None) -> None:
        """An access token was asked for."""
        if given.status == 200:
            self._audit.note(AuditAction.READ_SECRET, given.name, host or "", "access token", allowed=True)
        elif given.status == 401:
            self._audit.refused(host or "", "the name or the token is wrong", given.name)

    def answered(self, request: Request, host: str | None, reply: Reply) -> None:
        """An operation is answered."""
        name, principal = operation_name(request), request.principal
        what = NOTED.get(name, AuditAction.DENY if reply.denial else None)
        if what is None:
            return
        claimed = request.query.text("user.name") or "" if principal is None else ""
        self._audit.note(
            what,
            claimed if principal is None else principal.name,
            host or "",
            f"{request.path} ({name})",
            allowed=not reply.denial,
            reason=reply.denial or ("" if reply.status < 400 else f"answer {reply.status}"),
            claimed=bool(claimed),
        )
