"""Events for the tests of this room."""

from __future__ import annotations

from typing import Any

from bookkeeper.audit import AuditAction, AuditEvent


def event(who: str = "etl", what: AuditAction = AuditAction.FENCE, **more: Any) -> AuditEvent:
    fields: dict[str, Any] = {"address": "10.0.0.1:5000", "on": "ledger 7", "allowed": True, **more}
    return AuditEvent(what=what, who=who, **fields)


def stranger(address: str = "10.0.0.66:1", **more: Any) -> AuditEvent:
    """Somebody who has proven nothing, and is refused."""
    return event("", AuditAction.AUTHENTICATE, address=address, allowed=False, reason="the token is not valid", **more)


class KeptEvents:
    """An audit log that keeps the events."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def note(self, event: AuditEvent) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass
