"""Events of a bookie's connections in the audit log: clients admitted or refused, fences, denials, wrong keys (X16).

Entries and ordinary reads leave no line. A recovery fences with each of its reads: the first one of a connection for
each ledger is noted, and each that was refused.
"""

from __future__ import annotations

from typing import Final, Protocol

from bookkeeper import wire
from bookkeeper.access import LedgerOperation, Principal
from bookkeeper.audit import NO_AUDIT, AuditAction, AuditEvent, AuditLog
from bookkeeper.bookie.connections.request_log import ANSWERED, request_id
from bookkeeper.ids import LedgerId
from bookkeeper.wire import Status

WRONG_KEY: Final = "the key is not the ledger's"

FENCES_MAX: Final = 256
"""The most ledgers whose fence a connection remembers as noted; beyond it the oldest is forgotten."""


class Audited(Protocol):
    """A connection, as lines of the audit log name it."""

    principal: Principal
    fences_noted: dict[LedgerId, None]

    @property
    def peer(self) -> str: ...


class ConnectionAudit:
    """Writes the lines of one bookie's connections."""

    def __init__(self, log: AuditLog = NO_AUDIT) -> None:
        self.log = log
        self._is_on = log is not NO_AUDIT

    def note_admitted(self, connection: Audited, how: str) -> None:
        """A client was admitted; ``how`` names its credential."""
        self._note(AuditAction.AUTHENTICATE, connection, "bookie", allowed=True, reason=how)

    def note_refused(self, connection: Audited, reason: str, *, proven: str = "", claimed: str = "") -> None:
        """A client was refused. Its certificate has ``proven`` a name, or it has ``claimed`` one, or neither."""
        self.log.note(
            AuditEvent(
                what=AuditAction.AUTHENTICATE,
                who=proven or claimed,
                claimed=not proven and bool(claimed),
                address=connection.peer,
                on="bookie",
                allowed=False,
                reason=reason,
            )
        )

    def note_answered(
        self, connection: Audited, header: wire.RequestHeader, request: wire.Request, status: Status
    ) -> None:
        """A request other than a plain add was answered: note a fence or a wrong key."""
        if not self._is_on:
            return
        if isinstance(request, wire.ReadEntry | wire.BatchRead) and request.fence:
            self._note_fence(connection, header, request.ledger_id, status)
        elif status is Status.UNAUTHORIZED:
            named = request_id(connection.peer, header)
            self.note_wrong_key(connection, header.op.name, getattr(request, "ledger_id", -1), named)

    def _note_fence(self, connection: Audited, header: wire.RequestHeader, ledger_id: LedgerId, status: Status) -> None:
        allowed, noted = status is not Status.UNAUTHORIZED, connection.fences_noted
        if allowed:
            if ledger_id in noted:
                return
            if len(noted) >= FENCES_MAX:
                del noted[next(iter(noted))]
            noted[ledger_id] = None
        reason = WRONG_KEY if not allowed else "" if status in ANSWERED else f"answer {status.name}"
        named = request_id(connection.peer, header)
        on = f"ledger {ledger_id}"
        self._note(AuditAction.FENCE, connection, on, allowed=allowed, reason=reason, request=named)

    def note_denied(self, connection: Audited, what: str, ledger_id: int, why: str, *, refused: bool) -> None:
        """A request that the access policy does not allow was refused, or performed and only observed."""
        action = AuditAction.FENCE if what == LedgerOperation.FENCE.value else AuditAction.DENY
        reason = f"{what}: {why}" if refused else f"{what}: {why}; it was done, because the policy only observes"
        on = f"ledger {ledger_id}" if ledger_id >= 0 else "cluster"
        self._note(action, connection, on, allowed=not refused, reason=reason)

    def note_wrong_key(self, connection: Audited, what: str, ledger_id: int, request: str = "") -> None:
        """A request with a wrong ledger key was refused; ``request`` is its id."""
        reason = f"{what}: {WRONG_KEY}"
        self._note(AuditAction.DENY, connection, f"ledger {ledger_id}", allowed=False, reason=reason, request=request)

    def _note(
        self, what: AuditAction, connection: Audited, on: str, *, allowed: bool, reason: str, request: str = ""
    ) -> None:
        if self._is_on:
            self.log.note(
                AuditEvent(
                    what=what,
                    who=connection.principal.name,
                    address=connection.peer,
                    on=on,
                    allowed=allowed,
                    reason=reason,
                    request_id=request,
                )
            )
